import type { Spot } from './markdown.ts'
import { documentsOf } from './paths-in-docs.ts'
import type { Finding, SourceFile } from './source-file.ts'

/** What can be called: `./weir` commands and flags, npm scripts, test tiers and benches. */
export interface Callable {
  readonly commands: readonly string[]
  /** Commands of earlier versions, which only the changelog may show. */
  readonly retired: readonly string[]
  readonly flags: readonly string[]
  readonly scripts: readonly string[]
  readonly tiers: readonly string[]
  readonly benches: readonly string[]
}

const weirCall = /(?:^|[\s(]|\.\/)weir ([a-z][\w-]*)((?: +[^\s|&;#]+)*)/
const npmCall = /\bnpm (?:run ([a-z]+)|(test|start))((?: +[^\s|&;#]+)*)/
/** Words in capitals are for the reader to fill in. */
const isWord = (word: string) => /^[a-z][\w-]*$/.test(word)

function weirProblems(text: string, known: Callable): string[] {
  const [, command = '', rest = ''] = weirCall.exec(text) ?? []
  if (command === '') return []
  if (![...known.commands, 'help'].includes(command)) return [`./weir has no command ${command}`]
  const flags = rest.split(/\s+/).flatMap((word) => /^(--[a-z-]+)/.exec(word)?.[1] ?? [])
  return flags.filter((flag) => ![...known.flags, '--help'].includes(flag)).map((flag) => `./weir has no flag ${flag}`)
}

function npmProblems(text: string, known: Callable): string[] {
  const [, run, short, rest = ''] = npmCall.exec(text) ?? []
  const script = run ?? short ?? ''
  if (script === '') return []
  if (!known.scripts.includes(script)) return [`package.json has no script ${script}`]
  const words = rest.trim().split(/\s+/).filter(isWord)
  if (script === 'test')
    return words.filter((one) => !known.tiers.includes(one)).map((one) => `there is no tier ${one}`)
  const [bench] = script === 'bench' ? words : []
  return bench === undefined || known.benches.includes(bench) ? [] : [`there is no bench ${bench}`]
}

/** A code span is a command when it begins like one; a line of a code block when it has one anywhere. */
const isCommand = ({ text }: Spot) => /^(?:\.\/weir|weir|npm) /.test(text)

/** Every command that a document shows exists, with its flags. */
export function checkCommands(tree: readonly SourceFile[], all: Callable): Finding[] {
  return documentsOf(tree).flatMap(({ path, codeSpans, codeLines }) => {
    const known = path === 'CHANGELOG.md' ? { ...all, commands: [...all.commands, ...all.retired] } : all
    const lines = codeLines.filter(({ text }) => /(?:^|\s)(?:\.\/weir|npm) /.test(text))
    return [...codeSpans.filter(isCommand), ...lines].flatMap(({ text, line }) =>
      [...weirProblems(text, known), ...npmProblems(text, known)].map((what) => ({
        path,
        line,
        rule: 'commands',
        what,
      })),
    )
  })
}
