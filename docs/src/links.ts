import { dirname, join, relative } from 'node:path'
import type { MarkdownOptions } from 'vitepress'
import { isPage, placeOf } from './pages.ts'

type Renderer = Parameters<NonNullable<MarkdownOptions['config']>>[0]

/** What VitePress says of the page that is rendered; its index of words has only `path`. */
interface Environment {
  /** Absent where it is a text of the front matter. */
  readonly path?: string
  readonly realPath?: string
}

/** The file of a page, from the root of the repository. */
export const pathOf = (root: string, { path = root, realPath = path }: Environment) => relative(root, realPath)

/** Where the site keeps a file that pages link to: as text, whatever it is, so that every server shows it. */
export const textPlace = (path: string) => `files/${path}.txt`

/** A link as it is in the repository, as one of the site: to a page, or to the text of another file. */
function siteLink(page: string, link: string, linked: Set<string>): string {
  if (link === '' || /^(?:[a-z]+:|#|\/)/.test(link)) return link
  const [to = '', anchor] = link.split('#')
  const path = join(dirname(page), to)
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (isPage(path)) return `/${placeOf(path)}${hash}`
  linked.add(path)
  return `/${textPlace(path)}`
}

/**
 * Links of the pages, which are written for the repository, lead to the same pages of the site.
 *
 * @param linked gets the paths of files that are no pages.
 */
export function rewriteLinks(md: Renderer, root: string, linked: Set<string>): void {
  md.core.ruler.push('weir-links', ({ tokens, env }) => {
    const page = pathOf(root, env)
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type !== 'link_open') continue
      token.attrSet('href', siteLink(page, token.attrGet('href') ?? '', linked))
    }
  })
}
