import type { CommandParts } from '../command-parts.ts'
import { withExamples } from '../help-examples.ts'

/** Adds `weir tail`. */
export function addTailCommand({ program, common, context }: CommandParts): void {
  const tail = common(program.command('tail'))
    .option('--denied', 'only refusals', false)
    .option('--subject <id...>', 'only of these subjects')
    .option('--key-id <id...>', 'only by these keys')
    .option('--route <template...>', 'only of these routes')
    .description('Print decisions as they happen, one per line.')
    .option('--since <duration>', 'start this long ago, such as 5m')
    .option('--from <time>', 'start time, such as 2030-01-31T10:00:00Z or now-2h')
    .option('--to <time>', 'end time')
    .option('--no-follow', 'print past decisions only (default: the last 5 minutes)')
    .action(async (options) => (await import('./tail.ts')).tailDecisions(options, context))
  withExamples(tail, [
    ['tail --denied --subject acme', 'refusals of a customer'],
    ['tail --from now-2h --to now-1h --subject acme', "an hour of a customer's decisions"],
    ['tail --since 1h --no-follow --json', 'those of the last hour, one object a line'],
  ])
}
