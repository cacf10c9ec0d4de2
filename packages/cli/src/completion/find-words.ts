import type { Argument, Command, Option } from 'commander'

/** A word that a shell may offer. */
export interface Word {
  readonly text: string
  /** What it is for; empty where its name says it. */
  readonly about: string
}

/** What may come at the end of a line: words, a file, or a value that only a running Weir knows. */
export type Expected =
  | { readonly kind: 'words'; readonly words: readonly Word[] }
  | { readonly kind: 'file'; readonly before: string }
  | { readonly kind: 'value'; readonly of: string; readonly before: string }

const words = (texts: readonly string[], before = ''): Expected => ({
  kind: 'words',
  words: texts.map((text) => ({ text: before + text, about: '' })),
})

/** `--not-key-id <id...>` as `id` and `key-id`. */
const placeholderOf = ({ flags }: Option) => /[<[]([a-z]+)/.exec(flags)?.[1] ?? ''
const isFile = (placeholder: string) => placeholder === 'file' || placeholder === 'dir'

/** The value of an option, behind `before`, as in `--format=csv`. */
function valueOfOption(option: Option, before = ''): Expected {
  if (option.argChoices !== undefined) return words(option.argChoices, before)
  const placeholder = placeholderOf(option)
  if (isFile(placeholder)) return { kind: 'file', before }
  // A number of that name is no name of anything.
  if (placeholder === 'n') return words([])
  return { kind: 'value', of: (option.long ?? '').replace(/^--(?:not-)?/, ''), before }
}

function argumentOf(argument: Argument | undefined, command: Command): Expected {
  if (argument === undefined) return words([])
  if (argument.argChoices !== undefined) return words(argument.argChoices)
  if (isFile(argument.name())) return { kind: 'file', before: '' }
  const path = [argument.name()]
  for (let one: Command | null = command; one?.parent; one = one.parent) path.unshift(one.name())
  return { kind: 'value', of: path.join(' '), before: '' }
}

/** Says what the last of the words behind the program's name may become, by its commands, options and arguments. */
export function findExpected(program: Command, typed: readonly string[]): Expected {
  const last = typed.at(-1) ?? ''
  let command = program
  let given = 0
  /** The option whose value comes next. */
  let open: Option | undefined
  const used = new Set<string>()
  for (const word of typed.slice(0, -1)) {
    if (open !== undefined && !word.startsWith('-')) {
      if (!open.variadic) open = undefined
      continue
    }
    open = undefined
    if (word.startsWith('-')) {
      const option = command.options.find(({ long, short }) => word === long || word === short)
      if (option === undefined) continue
      if (!option.variadic) used.add(option.long ?? '')
      if (option.required || option.optional) open = option
      continue
    }
    const below = command.commands.find((one) => one.name() === word)
    if (below === undefined) given += 1
    else command = below
  }
  if (open !== undefined && !last.startsWith('-')) return valueOfOption(open)
  const [, name, value] = /^(--[^=]+=)(.*)$/s.exec(last) ?? []
  if (name !== undefined && value !== undefined) {
    const option = command.options.find(({ long }) => `${long}=` === name)
    return option === undefined ? words([]) : valueOfOption(option, name)
  }
  const help = command.createHelp()
  if (last.startsWith('-')) {
    const options = help.visibleOptions(command).filter(({ long }) => long !== undefined && !used.has(long))
    return { kind: 'words', words: options.map(({ long = '', description }) => ({ text: long, about: description })) }
  }
  if (command.commands.length > 0) {
    const below = given > 0 ? [] : help.visibleCommands(command)
    return { kind: 'words', words: below.map((one) => ({ text: one.name(), about: one.description() })) }
  }
  const { registeredArguments: all } = command
  return argumentOf(all[given] ?? (all.at(-1)?.variadic === true ? all.at(-1) : undefined), command)
}
