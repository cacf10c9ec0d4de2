import { createInterface } from 'node:readline/promises'
import { WeirError } from '@weir/core/errors.ts'
import type { CommandContext } from '../command-context.ts'

/**
 * Asks the person at the terminal, who types `yes` or ends the command. Throws COMMAND_INVALID where there is no
 * terminal, and for any other answer.
 */
export async function confirm(question: string, { signal, progress }: CommandContext): Promise<void> {
  const { stdin: input, stderr: output } = process
  if (!input.isTTY || !output.isTTY) throw new WeirError('COMMAND_INVALID', `${question} Add --yes to confirm.`)
  progress.end()
  const lines = createInterface({ input, output })
  try {
    const answer = await lines.question(`${question} Type yes to confirm: `, { signal })
    if (answer.trim() !== 'yes') throw new WeirError('COMMAND_INVALID', 'Nothing was changed.')
  } finally {
    lines.close()
  }
}
