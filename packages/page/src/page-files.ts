import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const web = join(import.meta.dirname, '..', 'web')

/** Modules that the page imports by these names; nothing else of a library is served. */
const libraries = ['preact', 'preact/hooks', 'htm'] as const

const types: Readonly<Record<string, string>> = {
  ts: 'text/javascript; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}
const endOf = (name: string) => name.slice(name.lastIndexOf('.') + 1)

/** What is served of a source: TypeScript without its types, of the same length and lines. */
const served = (name: string, text: string) => (name.endsWith('.ts') ? stripTypeScriptTypes(text) : text)

function readSources(): Map<string, string> {
  const names = readdirSync(web, { recursive: true, encoding: 'utf8' })
  const wanted = names.filter((name) => endOf(name) in types && !name.endsWith('.test.ts')).toSorted()
  const sources = new Map(wanted.map((name) => [name, served(name, readFileSync(join(web, name), 'utf8'))]))
  for (const name of libraries) {
    const text = readFileSync(fileURLToPath(import.meta.resolve(name)), 'utf8')
    // Its map is not served.
    sources.set(`lib/${name}.mjs`, text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'))
  }
  return sources
}

const sha256 = (text: string) => hash('sha256', text, 'base64')

/** Reads and compresses the page's files: once in a process, when a browser first asks. */
export function readPage() {
  const sources = readSources()
  const version = hash('sha256', JSON.stringify([...sources]), 'hex').slice(0, 16)
  const at = (name: string) => `/app/${version}/${name}`
  const importMap = JSON.stringify({
    imports: Object.fromEntries(libraries.map((name) => [name, at(`lib/${name}.mjs`)])),
  })
  const modules = [...sources.keys()].filter((name) => types[endOf(name)]?.startsWith('text/javascript') === true)
  const shell = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weir</title>
<link rel="icon" href="${at('icon.svg')}">
${['base.css', 'frame.css', 'charts.css', 'parts.css', 'narrow.css'].map((name) => `<link rel="stylesheet" href="${at(name)}">`).join('\n')}
<script type="importmap">${importMap}</script>
${modules.map((name) => `<link rel="modulepreload" href="${at(name)}">`).join('\n')}
<script type="module" src="${at('main.ts')}"></script>
<div id="page"><noscript>This page needs JavaScript. Everything it shows comes from the API: docs/usage.md.</noscript></div>
</html>
`
  const contentSecurityPolicy = [
    "default-src 'none'",
    // An import map can only stand in the document itself.
    `script-src 'self' 'sha256-${sha256(importMap)}'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
  /** By path, which has a hash of all files: what it names never changes. */
  const files = new Map(
    [...sources].map(([name, text]) => {
      const plain = Buffer.from(text)
      return [at(name), { type: types[endOf(name)] ?? '', plain, gzip: gzipSync(plain, { level: 9 }) }]
    }),
  )
  return { shell: Buffer.from(shell), contentSecurityPolicy, files }
}

/** Everything that browsers load: the one document of all paths, which holds no data, and the files. */
export type Page = ReturnType<typeof readPage>
