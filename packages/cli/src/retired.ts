import { WeirError } from '@weir/core/errors.ts'

/** Commands of earlier versions, by the words that called them, and the replacement for each. */
export const retired: Readonly<Record<string, string>> = {
  completion: 'Remove the line with "weir completion" from your shell profile; "./weir COMMAND --help" lists options.',
  invoices: 'Run "./weir usage export" for a billing system, or "./weir spend SUBJECT" for the running month.',
  top: 'Open the page /live of the console, or run "./weir tail" or "./weir usage --by subject --from now-15m --top 10".',
}

/** Throws COMMAND_INVALID where these words call a retired command: the message names its replacement. */
export function refuseRetired(words: readonly string[]): void {
  const typed = `${words.join(' ')} `
  const found = Object.entries(retired).find(([name]) => typed.startsWith(`${name} `))
  if (found !== undefined) throw new WeirError('COMMAND_INVALID', `"weir ${found[0]}" was removed. ${found[1]}`)
}
