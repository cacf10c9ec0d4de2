import type { Command } from 'commander'
import type { CommandContext } from '../command-context.ts'
import { withExamples } from '../help-examples.ts'
import { wholeNumber } from '../option-values.ts'

/** What the commands are added to, and with. */
interface Parts {
  readonly program: Command
  readonly common: (command: Command) => Command
  readonly context: CommandContext
}

/** Adds `weir tail` and `weir top`. */
export function addLiveCommands({ program, common, context }: Parts): void {
  const filtered = (command: Command) =>
    common(command)
      .option('--denied', 'only refusals', false)
      .option('--subject <id...>', 'only of these subjects')
      .option('--key-id <id...>', 'only by these keys')
      .option('--route <template...>', 'only of these routes')
  const tail = filtered(program.command('tail'))
    .description('Print decisions as they are made, one a line, until it is stopped.')
    .option('--since <duration>', 'those of before first, such as 5m')
    .option('--no-follow', 'only those of before; of the last 5 minutes without --since')
    .option('--screen', 'as a list on the whole terminal, in which Enter explains a decision', false)
    .action(async (options) => (await import('./tail.ts')).tailDecisions(options, context))
  withExamples(tail, [
    ['tail --denied --subject acme', 'refusals of a customer'],
    ['tail --since 1h --no-follow --json', 'those of the last hour, one object a line'],
    ['tail --screen', 'choose one, and Enter explains it'],
  ])
  const top = filtered(program.command('top'))
    .description('Show who asks how much now, who is refused, and by which limit, on the whole terminal.')
    .option('--seconds <n>', 'rates of so many seconds', wholeNumber(1, 60), 10)
    .option('--limit <n>', 'subjects that are printed where there is no terminal', wholeNumber(1, 500), 20)
    .action(async (options) => (await import('./top.ts')).showRates(options, context))
  withExamples(top, [
    ['top', 'on a terminal; in a pipe once'],
    ['top --seconds 2 --limit 5', 'rates of two seconds'],
    ['top --json --subject acme', 'the sums of each second, a line each'],
  ])
}
