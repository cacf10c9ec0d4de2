import type { Command } from 'commander'

/** Adds examples to the help of a command, each with what it does. A test runs all of them. */
export function withExamples(command: Command, examples: readonly (readonly [string, string])[]): Command {
  const width = Math.max(...examples.map(([line]) => line.length))
  const lines = examples.map(([line, what]) => `  ./weir ${line.padEnd(width)}  # ${what}`)
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`)
}
