import { matchesGlob } from 'node:path'
import { anchorOf } from '@weir/docs/anchor-of.ts'
import { type Markdown, readMarkdown } from './markdown.ts'
import { resolveRelative } from './packages.ts'
import type { Finding, SourceFile } from './source-file.ts'

/** A name with one of these endings is a file of ours wherever it is mentioned. */
const ourEndings = /\.(?:ts|lua|sql|md|json|yaml|Dockerfile)$/
const pathLike = /^(?:\.{1,2}\/)?[\w.*-]+(?:\/[\w.*-]+)*\/?$/

interface Places {
  readonly files: ReadonlySet<string>
  readonly folders: ReadonlySet<string>
}

function placesOf(tree: readonly SourceFile[]): Places {
  const files = new Set(tree.map(({ path }) => path))
  const folders = new Set<string>()
  for (const path of files) {
    const parts = path.split('/')
    for (let depth = 1; depth < parts.length; depth += 1) folders.add(parts.slice(0, depth).join('/'))
  }
  return { files, folders }
}

/** Whether the text means a file or folder of this repository: by its first folder, or by its ending. */
function meansPath(text: string, { folders }: Places): boolean {
  if (!pathLike.test(text) || text.startsWith('.weir/')) return false
  const first = text.replace(/^\.{1,2}\//, '').split('/')[0] ?? ''
  return ourEndings.test(text) || (text.includes('/') && folders.has(first))
}

/**
 * A path may be written from the root, from the document's folder, or by its last parts alone; `*` stands for any name.
 */
function isThere(text: string, document: string, { files, folders }: Places): boolean {
  const path = text.replace(/\/$/, '')
  const wanted = [path.replace(/^\.\//, ''), resolveRelative(document, path)]
  if (!path.includes('*')) {
    return (
      wanted.some((one) => files.has(one) || folders.has(one)) ||
      (!path.startsWith('.') && [...files].some((file) => file.endsWith(`/${path}`)))
    )
  }
  return [...files, ...folders].some((one) => [...wanted, `**/${path}`].some((pattern) => matchesGlob(one, pattern)))
}

/** Every path that a document names in back-ticks exists. */
export function checkPaths(tree: readonly SourceFile[]): Finding[] {
  const places = placesOf(tree)
  return documentsOf(tree).flatMap(({ path, codeSpans }) =>
    codeSpans
      .filter(({ text }) => meansPath(text, places) && !isThere(text, path, places))
      .map(({ text, line }) => ({ path, line, rule: 'paths', what: `${text} is not there` })),
  )
}

/** Every document of the tree, taken apart. */
export function documentsOf(tree: readonly SourceFile[]): Markdown[] {
  return tree.filter(({ path }) => path.endsWith('.md')).map(readMarkdown)
}

/** Every link within the repository leads somewhere, and its anchor is a heading there. */
export function checkLinks(tree: readonly SourceFile[]): Finding[] {
  const places = placesOf(tree)
  const documents = documentsOf(tree)
  const anchors = new Map(documents.map(({ path, headings }) => [path, headings.map(({ text }) => anchorOf(text))]))
  return documents.flatMap(({ path, links }) =>
    links.flatMap(({ text, line }) => {
      if (/^[a-z]+:/.test(text)) return []
      const [to = '', anchor] = text.split('#')
      const target = to === '' ? path : resolveRelative(path, to)
      if (!places.files.has(target) && !places.folders.has(target)) {
        return [{ path, line, rule: 'links', what: `${text} leads nowhere` }]
      }
      const isAnchor = anchor === undefined || (anchors.get(target) ?? []).includes(anchor)
      return isAnchor ? [] : [{ path, line, rule: 'links', what: `${target} has no heading for #${anchor}` }]
    }),
  )
}
