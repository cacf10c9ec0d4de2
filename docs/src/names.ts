import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MarkdownOptions } from 'vitepress'
import { pathOf } from './links.ts'
import { placeOf } from './pages.ts'

type Renderer = Parameters<NonNullable<MarkdownOptions['config']>>[0]

/** The page that lists all names, and the pages whose tables have them. */
const indexPage = 'docs/names.md'
const named: Readonly<Record<string, RegExp>> = {
  'docs/errors.md': /^(?:[A-Z]+(?:_[A-Z]+)+|urn:weir:problem:[\w-]+)$/,
  'docs/monitoring.md': /^(?:weir|gen_ai)_[a-z0-9_]+$/,
  'docs/configuration.md': /^(?:WEIR|OTEL)_[A-Z0-9_]+$/,
}

const firstCell = /^\s*\|\s*`([^`]+)`/gm

/** A line for each name that a table of the page begins a row with, which leads to that row. */
function lines(root: string, page: string): string {
  const text = readFileSync(join(root, page), 'utf8')
  const names = [...text.matchAll(firstCell)].map(([, name = '']) => name).filter((name) => named[page]?.test(name))
  const unique = [...new Set(names)].toSorted()
  return unique.map((name) => `- [\`${name}\`](${placeOf(page)}#${name})`).join('\n')
}

/**
 * A row that a name begins is an anchor of that name, and the page of all names has a line for each, below the heading
 * whose text links to the page that explains them.
 */
export function indexNames(md: Renderer, root: string): void {
  md.core.ruler.before('normalize', 'weir-names', (state) => {
    if (pathOf(root, state.env) !== indexPage) return
    state.src = state.src.replaceAll(/^<!-- names of (\S+) -->$/gm, (_, page: string) => lines(root, page))
  })
  md.core.ruler.push('weir-anchors', ({ tokens, env }) => {
    const pattern = named[pathOf(root, env)]
    if (pattern === undefined) return
    const seen = new Set<string>()
    tokens.forEach((token, at) => {
      const [name] = token.type === 'tr_open' ? (tokens[at + 2]?.children ?? []) : []
      if (name?.type !== 'code_inline' || !pattern.test(name.content) || seen.has(name.content)) return
      seen.add(name.content)
      token.attrSet('id', name.content)
    })
  })
}
