import { readdirSync } from 'node:fs'
import type { CommandContext } from '@weir/cli/command-context.ts'
import { inProject } from '@weir/cli/project.ts'
import { WeirError } from '@weir/core/errors.ts'
import { type BenchOptions, type BenchReport, formatReport } from '../bench/report.ts'

const folder = inProject('test', 'bench')
const ending = '.bench.ts'

/** What a file of test/bench exports. */
interface BenchModule {
  run(options: BenchOptions): Promise<BenchReport>
}

const names = () =>
  readdirSync(folder)
    .filter((file) => file.endsWith(ending))
    .map((file) => file.slice(0, -ending.length))

/** Runs one of test/bench, whose figures are medians over interleaved rounds of one run. */
export async function runBench(
  name: string | undefined,
  options: Omit<BenchOptions, 'progress'>,
  context: CommandContext,
): Promise<void> {
  if (name === undefined) return context.print(names().join('\n'))
  if (!names().includes(name)) {
    throw new WeirError('COMMAND_INVALID', `There is no bench ${name}; there are ${names().join(', ')}`)
  }
  const given = Object.entries<boolean | readonly string[]>({ ...options.more }).filter(
    ([, value]) => value === true || (value !== false && value.length > 0),
  )
  for (const [option] of given) {
    const owner = option === 'rows' || option === 'data' ? 'usage' : 'pipeline'
    if (name !== owner) throw new WeirError('COMMAND_INVALID', `Only the bench ${owner} takes --${option}.`)
  }
  const module: BenchModule = await import(`${folder}/${name}${ending}`)
  const report = await module.run({ ...options, progress: context.report })
  context.print(options.json ? JSON.stringify(report) : formatReport(report))
}
