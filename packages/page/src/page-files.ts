import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { buildSync } from 'esbuild'

const web = join(import.meta.dirname, '..', 'web')

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}
const endOf = (name: string) => name.slice(name.lastIndexOf('.') + 1)

/** Whose code is in the script beside ours. */
const banner = '/*! With uPlot (MIT, Leon Sorokin), Preact (MIT, Jason Miller) and htm (Apache-2.0, Google). */'

/** The page's files by name: one script and one style sheet of all sources, and the icon. */
function bundle(): Map<string, string> {
  const { outputFiles } = buildSync({
    entryPoints: [join(web, 'main.ts'), join(web, 'style.css')],
    outdir: web,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2023',
    banner: { js: banner },
    logLevel: 'silent', // It throws what is wrong.
    write: false,
  })
  const files = outputFiles.map(({ path, text }) => [path.slice(web.length + 1), text] as const)
  return new Map([...files, ['icon.svg', readFileSync(join(web, 'icon.svg'), 'utf8')]])
}

/** Makes and compresses the page's files: once in a process, when a browser first asks. */
export function readPage() {
  const sources = bundle()
  const version = hash('sha256', JSON.stringify([...sources]), 'hex').slice(0, 16)
  const at = (name: string) => `/app/${version}/${name}`
  const shell = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weir</title>
<link rel="icon" href="${at('icon.svg')}">
<link rel="stylesheet" href="${at('style.css')}">
<script type="module" src="${at('main.js')}"></script>
<div id="page"><noscript>This page needs JavaScript. Everything it shows comes from the API: docs/usage.md.</noscript></div>
</html>
`
  const contentSecurityPolicy = [
    "default-src 'none'",
    "script-src 'self'",
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
