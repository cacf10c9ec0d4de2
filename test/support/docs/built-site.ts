import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { runWeir } from '../weir-up.ts'

const base = '/handbook/'
const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }

/** The site as `npm run docs` builds it, below a path of a server that does nothing but give files. */
export async function buildSite() {
  const folder = await mkdtemp(join(tmpdir(), 'weir-test-docs-'))
  const { code, stdout, stderr } = await runWeir(['docs', '--base', base, '--outDir', folder])
  if (code !== 0) throw new Error(`the site does not build:\n${stdout}${stderr}`)
  const server = createServer(async ({ url = '' }, response) => {
    const path = decodeURIComponent(new URL(url, 'http://localhost').pathname)
    const file = fileOf(folder, path)
    if (file === undefined) return response.writeHead(404).end()
    response.setHeader('content-type', types[extname(file)] ?? 'application/octet-stream')
    response.end(await readFile(file))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The path that it is below, with slashes around. */
    base,
    folder,
    async close() {
      server.closeAllConnections()
      server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function fileOf(folder: string, path: string): string | undefined {
  if (!path.startsWith(base)) return undefined
  const file = join(folder, path.slice(base.length), path.endsWith('/') ? 'index.html' : '')
  return existsSync(file) ? file : undefined
}

/** Links and pictures of every page that lead nowhere within the site, or to an anchor that their page has not. */
export function deadLinks(folder: string): string[] {
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((one) => one.endsWith('.html'))
  const htmlOf = new Map(pages.map((page) => [join(folder, page), readFileSync(join(folder, page), 'utf8')]))
  return [...htmlOf].flatMap(([page, html]) =>
    [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].flatMap(([, link = '']) => {
      if (/^[a-z]+:/.test(link)) return []
      const [path = '', anchor] = link.split('#')
      const file = path === '' ? page : fileOf(folder, path)
      const isThere = file !== undefined && (anchor === undefined || htmlOf.get(file)?.includes(` id="${anchor}"`))
      return isThere ? [] : [`${page}: ${link}`]
    }),
  )
}
