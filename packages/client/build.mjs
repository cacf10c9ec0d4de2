// Makes dist/: the same sources as ESM and as CommonJS, each with its types. Run by `npm run build` and before packing.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const here = import.meta.dirname
const [outDir = join(here, 'dist')] = process.argv.slice(2)
const packing = process.env.npm_lifecycle_event === 'prepack' || process.env.npm_command === 'pack'
if (packing && !process.env.npm_config_user_agent?.startsWith('pnpm/')) {
  throw new Error('pack and publish this with pnpm: npm knows neither catalog: nor publishConfig.exports')
}

const tsc = join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc')
rmSync(outDir, { recursive: true, force: true })
for (const [kind, type] of [
  ['esm', 'module'],
  ['cjs', 'commonjs'],
]) {
  const folder = join(outDir, kind)
  execFileSync(process.execPath, [tsc, '-p', join(here, `tsconfig.${kind}.json`), '--outDir', folder], {
    stdio: 'inherit',
  })
  // In types the compiler leaves the sources' endings as they are.
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((one) =>
    one.endsWith('.d.ts'),
  )) {
    const file = join(folder, name)
    writeFileSync(file, readFileSync(file, 'utf8').replace(/(from '\.\.?\/[\w/-]+)\.ts'/g, "$1.js'"))
  }
  writeFileSync(join(folder, 'package.json'), `{"type":"${type}"}\n`)
}
