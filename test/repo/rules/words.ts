import { parseSource } from './parse-source.ts'
import { type Finding, lineAt, type SourceFile } from './source-file.ts'

const rule = 'words'

/** Words that the field does not use, with what to write instead (docs/glossary.md). */
const forbidden: readonly (readonly [words: RegExp, instead: string])[] = [
  [/\bwhoever\b/i, 'the caller, the client, the next owner'],
  [/\bnobody['’]s\b|\b(?:is|are|was) nobody\b/i, 'is unauthenticated, belongs to no subject, no one reads'],
  [/\banew\b/i, 'again, from scratch'],
  [/\bmend(?:s|ed|ing)?\b/i, 'repair (data), fix (people)'],
  [/\bwhat (?:becomes|became|comes|came) of\b/i, 'the outcome of'],
  [/\b(?:told|tells?|telling|hears?|heard) of\b/i, 'reports, is notified of, learns'],
  [/\bin the place of\b/i, 'instead of'],
  [/\b(?:its|their) (?:like|equals)\b/i, 'identical …, a request like this'],
  [/\blets? go\b/i, 'releases, evicts'],
  [/\b(?:is|are) owed\b|\bowes\b/i, 'is pending'],
  [/\bstrangers?\b/i, 'an unauthenticated caller, an untrusted peer, a foreign record'],
  [/\bheld to\b/i, 'subject to'],
  [/\bsigns? of life\b/i, 'heartbeat'],
  [/\bby halves\b/i, 'partially'],
  [/\b(?:for|after|within|every) so (?:long|many|often)\b|\bso (?:often|long|many) at (?:most|least)\b/i, 'up to N ms'],
]

interface Prose {
  readonly text: string
  readonly line: number
}

const linesOf = (text: string, from: number): Prose[] =>
  text.split('\n').map((content, at) => ({ text: content, line: from + at }))

/** Comments and the titles of tests: what a person reads in a file of code. */
function proseOf(file: SourceFile): Prose[] {
  if (file.path.endsWith('.ts')) {
    const titles = [...file.text.matchAll(/\b(?:test|it|describe)(?:\.each\([^)]*\))?\(\s*(['"`])(.*?)\1/g)]
    return [
      ...parseSource(file).comments.flatMap(({ value, start }) => linesOf(value, lineAt(file.text, start))),
      ...titles.map((title) => ({ text: title[2] ?? '', line: lineAt(file.text, title.index) })),
    ]
  }
  if (/\.(?:lua|sql)$/.test(file.path)) {
    return linesOf(file.text, 1).flatMap(({ text, line }) => {
      const at = text.indexOf('--')
      return at === -1 ? [] : [{ text: text.slice(at), line }]
    })
  }
  return file.path.endsWith('.md') ? proseOfMarkdown(file.text) : []
}

/** A document without its code: neither fences, nor code spans, nor the targets of links. */
function proseOfMarkdown(text: string): Prose[] {
  let inCode = false
  return linesOf(text, 1).flatMap(({ text: content, line }) => {
    const isFence = /^\s*```/.test(content)
    if (isFence) inCode = !inCode
    if (isFence || inCode) return []
    return [{ text: content.replaceAll(/`[^`]*`/g, '').replaceAll(/\]\([^)]*\)/g, ']'), line }]
  })
}

/**
 * The history keeps its words, applied migrations never change, and two files name the words to say what to write
 * instead.
 */
const exempt =
  /^(?:CHANGELOG\.md|docs\/glossary\.md|test\/repo\/(?:bad-inputs\.test|rules\/words)\.ts|infra\/clickhouse\/migrations\/)/

/** Forbidden words in comments, titles of tests and documents. */
export function checkWords(tree: readonly SourceFile[]): Finding[] {
  return tree
    .filter(({ path }) => !exempt.test(path))
    .flatMap((file) =>
      proseOf(file).flatMap(({ text, line }) =>
        forbidden.flatMap(([words, instead]) => {
          const found = words.exec(text)?.[0]
          return found === undefined ? [] : [{ path: file.path, line, rule, what: `${found}: write ${instead}` }]
        }),
      ),
    )
}

const columnsMax = 120

/** Lines that are too long to be read in two columns; tables, links and quotes of other programs may be. */
export function checkColumns(files: readonly SourceFile[]): Finding[] {
  return files.flatMap(({ path, text }) =>
    exempt.test(path)
      ? []
      : text.split('\n').flatMap((content, at) => {
          const isLong = content.length > columnsMax && /^\s*(?:\/?\*|\/\/|--)/.test(content)
          return isLong ? [{ path, line: at + 1, rule, what: `a comment of ${content.length} columns` }] : []
        }),
  )
}
