import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import type { CommandContext } from '@weir/cli/command-context.ts'
import { inProject, projectRoot } from '@weir/cli/project.ts'
import { WeirError } from '@weir/core/errors.ts'

/** In the order in which a failure is cheapest to find. */
const tiers = ['repo', 'unit', 'lua', 'servers', 'smoke'] as const
/** Only when asked for: they take from half an hour to as long as one likes. */
const tiersByName = ['failure', 'soak'] as const
/** Not tests: the type checker, the linter and the repo's own rules. */
const checkWord = 'check'

type Step = {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  readonly report: string | undefined
}

const bin = (name: string) => inProject('node_modules', '.bin', name)

const checks: readonly Step[] = [
  { name: 'types', command: [bin('tsc'), '-p', projectRoot], report: undefined },
  { name: 'format and lint', command: [bin('biome'), 'check', projectRoot], report: undefined },
]

function tierStep(tier: string): Step {
  const report = inProject('.weir', 'tests', `${tier}.json`)
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
  return {
    name: tier,
    command: [
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      vitest,
      'run',
      '--project',
      tier,
      ...reporters,
    ],
    report,
  }
}

function stepsFor(words: readonly string[]): Step[] {
  const known: readonly string[] = [checkWord, ...tiers, ...tiersByName]
  const unknown = words.filter((word) => !known.includes(word))
  if (unknown.length > 0) {
    throw new WeirError('CONFIG_INVALID', `There is no test tier ${unknown.join(', ')}; there are ${known.join(', ')}`)
  }
  if (words.length === 0) return [...checks, ...tiers.map(tierStep)]
  return words.flatMap((word) => (word === checkWord ? [...checks, tierStep('repo')] : [tierStep(word)]))
}

interface Counts {
  readonly passed: number
  readonly failed: number
}

/** What a tier's run came to. A run that ended badly without a failed test (a server missing, a crash) counts as one. */
function countsOf({ report }: Step, exitCode: number): Counts {
  let counts = { passed: 0, failed: 0 }
  try {
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report ?? '', 'utf8'))
    counts = { passed: numPassedTests, failed: numFailedTests }
  } catch {
    // A check, or a run that died before it could report.
    if (report === undefined && exitCode === 0) counts = { passed: 1, failed: 0 }
  }
  return exitCode !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts
}

function runStep({ command: [program, ...args] }: Step, context: CommandContext): Promise<number> {
  return new Promise((resolve) => {
    const env = { ...context.environment, FORCE_COLOR: context.environment.FORCE_COLOR } as NodeJS.ProcessEnv
    const child = spawn(program, args, { cwd: projectRoot, stdio: ['ignore', 'inherit', 'inherit'], env })
    context.signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true })
    child.once('error', () => resolve(127))
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

/** Runs the tiers one after another, all of them even if one fails, and ends with the sum. */
export async function runTiers(words: readonly string[], context: CommandContext): Promise<boolean> {
  const steps = stepsFor(words)
  rmSync(inProject('.weir', 'tests'), { recursive: true, force: true })
  mkdirSync(inProject('.weir', 'tests'), { recursive: true })
  const lines: string[] = []
  let passed = 0
  let failed = 0
  for (const step of steps) {
    if (context.signal.aborted) break
    context.report(`${step.name} …`)
    const startedAt = performance.now()
    const counts = countsOf(step, await runStep(step, context))
    passed += counts.passed
    failed += counts.failed
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
    lines.push(
      `  ${step.name.padEnd(16)} ${String(counts.passed).padStart(5)} passed ${String(counts.failed).padStart(3)} failed ${seconds.padStart(7)} s`,
    )
  }
  context.print(['', ...lines, '', `${passed} passed, ${failed} failed`].join('\n'))
  return failed === 0 && !context.signal.aborted
}
