import { InvalidArgumentError, Option } from 'commander'
import type { CommandParts } from '../command-parts.ts'
import { withExamples } from '../help-examples.ts'
import { wholeNumber } from '../option-values.ts'

const number = (value: string): number => {
  if (/^\d+(?:\.\d+)?$/.test(value)) return Number(value)
  throw new InvalidArgumentError('It must be a number.')
}

/** Adds `weir load`. */
export function addLoadCommand({ program, common, context, file, exitUnless }: CommandParts): void {
  const command = common(program.command('load'))
    .description(
      'Load a Weir, and say how fast it answers and whether every limit holds: exit code 1 if one is broken.',
    )
    .addOption(file('--profile <file>', 'load profile in YAML; flags override it'))
    .addOption(new Option('--via <way>', 'what is asked: check').choices(['check', 'proxy', 'grpc']))
    .option('--target <url>', 'URL of the Weir to test (default: the one that weir up started here)')
    .option('--subject <id...>', 'subjects, such as acme or customer-{1..1000} (default: those in the policy)')
    .option('--skew <s>', 'traffic skew: 0 is even, 1 gives the second subject half as much as the first', number)
    .option('--route <request...>', 'requests, such as "POST /v1/search" (default: the policy\'s routes)')
    .option('--rate <n>', 'requests per second, regardless of response times', wholeNumber(1, 100_000))
    .addOption(
      new Option('--users <n>', 'instead: users who each wait for their answer')
        .argParser(wholeNumber(1, 1_000))
        .conflicts('rate'),
    )
    .option('--think <duration>', 'how long each user waits after a response, such as 500ms')
    .option('--for <duration>', 'duration (default: 30s)')
    .addOption(file('--keys <file>', 'API keys for the proxy: one line "acme: KEY" per subject'))
    .addOption(file('--policy <file>', 'policy file to compare the results with (default: the policy in force)'))
    .addOption(file('--compare <file>', 'output of an earlier --json run to compare with'))
    .action(async (options) => exitUnless((await (await import('./load.ts')).load(options, context)).isHeld))
  withExamples(command, [
    ['load --rate 100 --for 10s', "the policy's subjects and routes, by the check API"],
    [
      'load --via proxy --subject demo --route "GET /hello" --users 5 --think 200ms --for 5s',
      'five users by the proxy',
    ],
  ])
}
