/**
 * Puts what the last runs of the tests counted into the table of docs/security.md: `node
 * test/servers/security/write-table.ts`. A file that did not run keeps its rows; rows of a file that no longer counts
 * them go.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { type AttemptsRow, attemptsFile, lineOf, securityPage } from '../../support/count-attempts.ts'

const [begin, end] = ['<!-- table: begin -->', '<!-- table: end -->']
const text = readFileSync(securityPage, 'utf8')
const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]

const rows = new Map<string, AttemptsRow>()
for (const line of text.slice(from, to).matchAll(/^\| ([^*|]+) \| ([\d,]+) \| (.+) \| \[.*\]\(\.\.\/(.*)\) \|$/gm)) {
  const [, area = '', attempts = '', holds = '', file = ''] = line
  rows.set(`${area} ${file}`, { area, attempts: Number(attempts.replaceAll(',', '')), holds, file })
}
for (const line of existsSync(attemptsFile) ? readFileSync(attemptsFile, 'utf8').trim().split('\n') : []) {
  const row: AttemptsRow = JSON.parse(line)
  rows.set(`${row.area} ${row.file}`, row)
}
const counts = ({ file, area }: AttemptsRow) =>
  existsSync(join(projectRoot, file)) && readFileSync(join(projectRoot, file), 'utf8').includes(`'${area}'`)
const kept = [...rows.values()].filter(counts)
const byArea = kept.toSorted((a, b) => (`${a.area} ${a.file}` < `${b.area} ${b.file}` ? -1 : 1))
const sum = kept.reduce((total, { attempts }) => total + attempts, 0)
const table = [
  '| Area | Attempts | What must hold | Test |',
  '| --- | --- | --- | --- |',
  ...byArea.map(lineOf),
  `| **all** | **${sum.toLocaleString('en-US')}** | | |`,
].join('\n')
writeFileSync(securityPage, `${text.slice(0, from)}\n${table}\n${text.slice(to)}`)
process.stdout.write(`${kept.length} rows, ${sum} attempts in docs/security.md\n`)
