import { readdirSync } from 'node:fs'
import { WeirError } from '@weir/core/errors.ts'
import { inProject, type Surroundings } from '../project.ts'

const folder = inProject('test', 'bench')
const ending = '.bench.ts'

/** What a file of test/bench exports, and what test/bench/report.ts makes of its result. */
interface BenchModule {
  run(options: {
    readonly rounds: number
    readonly json: boolean
    readonly progress: (line: string) => void
  }): Promise<object>
}
interface ReportModule {
  formatReport(report: object): string
}

const names = () =>
  readdirSync(folder)
    .filter((file) => file.endsWith(ending))
    .map((file) => file.slice(0, -ending.length))

/** Runs one of test/bench, whose figures are medians over interleaved rounds of one run. */
export async function bench(
  name: string | undefined,
  options: { readonly rounds: number; readonly json: boolean },
  around: Surroundings,
): Promise<void> {
  if (name === undefined) return around.print(names().join('\n'))
  if (!names().includes(name)) {
    throw new WeirError('CONFIG_INVALID', `There is no bench ${name}; there are ${names().join(', ')}`)
  }
  const module: BenchModule = await import(`${folder}/${name}${ending}`)
  const report = await module.run({ ...options, progress: around.say })
  const { formatReport }: ReportModule = await import(`${folder}/report.ts`)
  around.print(options.json ? JSON.stringify(report) : formatReport(report))
}
