import { resolve } from 'node:path'
import { Argument, type Command } from 'commander'
import type { CommandParts } from '../command-parts.ts'
import { policyTime } from '../option-values.ts'

/** Adds `weir rates`. */
export function addRatesCommands({ program, common, context }: CommandParts): void {
  const rates = program.command('rates').description('Rate cards from a public map of models and their prices.')
  const ofMap = (command: Command) =>
    command
      .addArgument(new Argument('<map>', 'whose map the file is').choices(['litellm']))
      .argument('<file>', 'model_prices_and_context_window.json')
      .option('--provider <name...>', 'only these suppliers, as the file calls them', [])
  ofMap(rates.command('import'))
    .description('Print a rate card with the prices of a file.')
    .requiredOption('--from <time>', 'the time from which the prices apply, such as 2026-09-01T00:00:00Z', policyTime)
    .action(async (_, path: string, options) =>
      (await import('./rates.ts')).printRates(resolve(context.cwd, path), options, context),
    )
  ofMap(common(rates.command('diff')))
    .description('Show which prices in force differ from those of a file.')
    .action(async (_, path: string, options) =>
      (await import('./rates.ts')).diffRates(resolve(context.cwd, path), options, context),
    )
}
