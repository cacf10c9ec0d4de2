import { printable } from '@weir/core/printable.ts'
import type { Command } from 'commander'
import type { CommandContext } from '../command-context.ts'
import { findExpected } from '../completion/find-words.ts'
import { askValues } from '../completion/known-values.ts'
import { type Shell, shellScript } from '../completion/shell-scripts.ts'
import { inProject } from '../project.ts'

/** Prints the script that completes commands in a shell. */
export const printScript = (shell: Shell, context: CommandContext): void =>
  context.print(shellScript(shell, inProject('weir')), 'exactly')

/** A quote that is not closed yet, and what a backslash protects. */
const unquoted = (word: string) => word.replace(/^["']/, '').replaceAll(/\\(.)/g, '$1')

/** Prints what the last word may become, a line each, for the scripts of shells. */
export async function completeWords(typed: readonly string[], program: Command, context: CommandContext) {
  const read = typed.map(unquoted)
  const last = read.at(-1) ?? ''
  const expected = findExpected(program, read)
  if (expected.kind === 'file') return context.print(':files')
  const at = read.indexOf('--data')
  const data = read[at + 1]
  const askFor = async (of: string, before: string) => {
    const where = { data: at < 0 || data === undefined ? inProject('.weir', 'data') : data, context }
    const values = await askValues(of, last.slice(before.length), where)
    return values.map((value) => ({ text: before + value, about: '' }))
  }
  const words = expected.kind === 'words' ? expected.words : await askFor(expected.of, expected.before)
  for (const { text, about } of words) {
    // Nobody can type what is escaped.
    if (!text.startsWith(last) || printable(text) !== text) continue
    context.print(about === '' ? text : `${text}\t${about}`, 'exactly')
  }
}
