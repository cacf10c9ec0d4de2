import type { Command, Option } from 'commander'
import type { CommandContext } from './command-context.ts'

/** What commands are added to, and with. */
export interface CommandParts {
  readonly program: Command
  /** Adds the options of every command that looks at what a `weir up` runs, or at servers that variables name. */
  readonly common: (command: Command) => Command
  readonly context: CommandContext
  /** An option that names a file, relative to the folder in which the person typed. */
  readonly file: (flags: string, about: string) => Option
  /** Ends a command whose answer is no with this exit code, 1 if none is given. */
  readonly exitUnless: (isYes: boolean, exitCode?: number) => void
}
