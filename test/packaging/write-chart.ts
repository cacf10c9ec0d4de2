/* Writes the files of the chart that are made of other files of the repository: npm run chart */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { chartFiles, chartFolder } from './chart-files.ts'

for (const [path, text] of Object.entries(await chartFiles())) {
  const file = resolve(import.meta.dirname, '../..', chartFolder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
