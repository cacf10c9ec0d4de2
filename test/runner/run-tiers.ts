import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { CommandContext } from '@weir/cli/command-context.ts'
import { inProject, projectRoot } from '@weir/cli/project.ts'
import { WeirError } from '@weir/core/errors.ts'
import { isLarge } from '../support/failure/is-large.ts'
import {
  changedWord,
  checkWord,
  folderOf,
  nightlyTiers,
  nightlyWord,
  recentWord,
  tiers,
  tiersByName,
  tierWords,
} from './tiers.ts'

/** `servers` has files that run side by side, and files that run alone. */
const projectsOf: Readonly<Record<string, readonly string[]>> = { servers: ['servers', 'servers-alone'] }

const slowestMax = 10

interface Step {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  readonly report: string | undefined
}

const bin = (name: string) => inProject('node_modules', '.bin', name)

const checks: readonly Step[] = [
  { name: 'types', command: [bin('tsc'), '-p', projectRoot], report: undefined },
  // Browsers have other globals than Node.
  { name: 'types of the page', command: [bin('tsc'), '-p', inProject('packages', 'page', 'web')], report: undefined },
  { name: 'format and lint', command: [bin('biome'), 'check', projectRoot], report: undefined },
]

/** All files of the tier, unless some are named. */
function tierStep(tier: string, files: readonly string[] = []): Step {
  const report = inProject('.weir', 'tests', `${tier}.json`)
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const projects = (projectsOf[tier] ?? [tier]).flatMap((project) => ['--project', project])
  const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
  const node = [process.execPath, '--disable-warning=ExperimentalWarning'] as const
  return { name: tier, command: [...node, vitest, 'run', ...projects, ...reporters, ...files], report }
}

/** A day may name thousands of files, each many times. */
const gitOutputMaxBytes = 64_000_000
const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: projectRoot, encoding: 'utf8', maxBuffer: gitOutputMaxBytes })
    .split('\n')
    .filter((line) => line !== '')

/** Of these tiers, the test files that the changed files touch. */
async function touchedSteps(of: readonly string[], changed: readonly string[], context: CommandContext) {
  const [{ tree }, { testsTouchedBy }] = await Promise.all([
    import('../repo/read-tree.ts'),
    import('./changed-tests.ts'),
  ])
  const picked = testsTouchedBy(changed, tree)
  const steps: Step[] = []
  for (const tier of of) {
    const isOfTier = (path: string) => path.endsWith('.test.ts') && folderOf(tier).test(path)
    const [files, all] = [picked.filter(isOfTier), tree.filter(({ path }) => isOfTier(path))]
    const isAll = files.length === all.length
    context.report(`${tier}: ${isAll ? 'all' : `${files.length} of`} ${all.length}`)
    if (!isAll) for (const file of files) context.report(`  ${file}`)
    if (files.length > 0) steps.push(tierStep(tier, isAll ? [] : files))
  }
  return steps
}

/** The checks, the repository's rules, and the tests that the changes since `base` touch, committed or not. */
async function changedSteps(base: string, context: CommandContext): Promise<Step[]> {
  let changed: string[]
  try {
    const committed = git('diff', '--name-only', '--no-renames', '--merge-base', base, '--')
    changed = [...committed, ...git('ls-files', '--others', '--exclude-standard')]
  } catch (error) {
    throw new WeirError('COMMAND_INVALID', `git cannot compare with ${base}: ${error}`)
  }
  context.report(`files that differ from ${base}: ${changed.length}. Beside types, lint and repo these test files run:`)
  const others = [...tiers, ...nightlyTiers].filter((one) => one !== 'repo')
  return [...checks, tierStep('repo'), ...(await touchedSteps(others, changed, context))]
}

/** Together the nightly tiers take some minutes: a day that touches all of them stays within what CI may take. */
async function recentSteps(context: CommandContext): Promise<Step[]> {
  // A merge is what it brought to the branch, however old the commits are that it merged.
  const log = ['log', '--since=1 day ago', '--first-parent', '-m', '--name-only', '--no-renames', '--format=']
  const changed = new Set(git(...log))
  context.report(`files in commits of the last day: ${changed.size}. Of the nightly tiers these test files run:`)
  return [...defaultSteps(), ...(await touchedSteps(nightlyTiers, [...changed], context))]
}

const defaultSteps = () => [...checks, ...tiers.map((tier) => tierStep(tier))]

async function stepsFor(words: readonly string[], context: CommandContext): Promise<Step[]> {
  const [first, base = 'main', ...more] = words
  if (first === changedWord && more.length === 0) return changedSteps(base, context)
  if (first === recentWord && words.length === 1) return recentSteps(context)
  const known: readonly string[] = [checkWord, nightlyWord, ...tiers, ...tiersByName]
  const unknown = words.filter((word) => !known.includes(word))
  if (unknown.length > 0) {
    const all = tierWords.join(', ')
    throw new WeirError('COMMAND_INVALID', `There is no test tier ${unknown.join(', ')}; there are ${all}`)
  }
  if (words.includes('failure') && !isLarge) {
    context.report('test/failure/ha.test.ts is left out: it runs with WEIR_TEST_TOPOLOGY=ha (test/README.md)')
  }
  if (words.includes('servers') && !context.environment.WEIR_CLICKHOUSE_URL) {
    context.report(
      'ClickHouse is its engine as a library; WEIR_CLICKHOUSE_URL=http://USER:PASSWORD@HOST:8123 npm test -- servers takes a server (test/README.md)',
    )
  }
  if (words.length === 0) return defaultSteps()
  const steps = words.flatMap((word) => {
    if (word === checkWord) return [...checks, tierStep('repo')]
    return (word === nightlyWord ? nightlyTiers : [word]).map((tier) => tierStep(tier))
  })
  return [...new Map(steps.map((step) => [step.name, step])).values()]
}

/** These run no program beside Weir's own servers. */
const plainTiers: readonly string[] = ['repo', 'unit', 'lua']

/** Finds or fetches the programs of tests. Names all that are missing at once, with the tests that wait for them. */
async function preparePrograms(steps: readonly Step[], { environment, report }: CommandContext): Promise<void> {
  if (steps.every(({ name, report: file }) => file === undefined || plainTiers.includes(name))) return
  const [{ providePrograms }, { inLines }] = await Promise.all([
    import('../support/programs/provide-programs.ts'),
    import('@weir/local-programs/fetch-progress.ts'),
  ])
  const missing = await providePrograms({ environment, tell: inLines(report) })
  if (missing.length === 0) return
  const [{ tree }, { testsTouchedBy, usersByFile }] = await Promise.all([
    import('../repo/read-tree.ts'),
    import('./changed-tests.ts'),
  ])
  const users = usersByFile(tree)
  for (const { program, message } of missing) {
    const waiting = testsTouchedBy(program.usedBy, tree, users)
    report(`${message}. Test files that wait for it: ${waiting.length} (${waiting.join(', ')})`)
  }
}

interface Outcome {
  readonly passed: number
  /** Tests, and files that failed as a whole. */
  readonly failed: number
  /** What those files kept from running. */
  readonly skipped: number
  readonly files: readonly { readonly path: string; readonly seconds: number }[]
  /** One line for each failed test: its file, its name and how its first message begins. */
  readonly failures: readonly string[]
}

interface VitestReport {
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly startTime: number
    readonly endTime: number
    /** What kept the whole file from running. */
    readonly message: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages?: readonly string[]
    }[]
  }[]
}

const messageMaxChars = 300

/** As vitest calls a test whose file failed before it. */
const notRun = ['skipped', 'pending']

function failuresOf({ testResults }: VitestReport): string[] {
  return testResults.flatMap(({ name, message, assertionResults }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed')
    const lines = failed.map(({ fullName, failureMessages = [] }) => `${fullName}: ${failureMessages[0] ?? ''}`)
    if (lines.length === 0 && message !== '') lines.push(message)
    return lines.map(
      (line) => `  ${relative(projectRoot, name)}  ${stripVTControlCharacters(line).slice(0, messageMaxChars)}`,
    )
  })
}

/**
 * What a tier's run came to. A run that ended badly without a failed test (a server missing, a crash) counts as one.
 */
function outcomeOf({ report }: Step, exitCode: number): Outcome {
  let outcome: Outcome = { passed: 0, failed: 0, skipped: 0, files: [], failures: [] }
  try {
    const read: VitestReport = JSON.parse(readFileSync(report ?? '', 'utf8'))
    const files = read.testResults.map(({ name, startTime, endTime }) => ({
      path: relative(projectRoot, name),
      seconds: (endTime - startTime) / 1_000,
    }))
    const failures = failuresOf(read)
    const tests = read.testResults.flatMap(({ assertionResults }) => assertionResults)
    const skipped = tests.filter(({ status }) => notRun.includes(status)).length
    outcome = { passed: read.numPassedTests, failed: failures.length, skipped, files, failures }
  } catch {
    // A check, or a run that died before it could report.
    if (report === undefined && exitCode === 0) outcome = { ...outcome, passed: 1 }
  }
  return exitCode !== 0 && outcome.failed === 0 ? { ...outcome, failed: 1 } : outcome
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

const secondsText = (seconds: number) => `${seconds.toFixed(1).padStart(7)} s`

function slowestFiles(files: Outcome['files']): string[] {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowestMax)
  return slowest.length === 0
    ? []
    : ['The slowest files:', ...slowest.map(({ path, seconds }) => `${secondsText(seconds)}  ${path}`), '']
}

/** Runs all tiers, even after one that fails. It prints the slowest files, the failed tests and the sum at the end. */
export async function runTiers(words: readonly string[], context: CommandContext): Promise<boolean> {
  const steps = await stepsFor(words, context)
  rmSync(inProject('.weir', 'tests'), { recursive: true, force: true })
  mkdirSync(inProject('.weir', 'tests'), { recursive: true })
  await preparePrograms(steps, context)
  const lines: string[] = []
  const outcomes: Outcome[] = []
  const beganAt = performance.now()
  const since = (atMs: number) => (performance.now() - atMs) / 1_000
  for (const step of steps) {
    if (context.signal.aborted) break
    context.report(`${step.name} …`)
    const startedAt = performance.now()
    const outcome = outcomeOf(step, await runStep(step, context))
    outcomes.push(outcome)
    const skipped = outcome.skipped > 0 ? ` ${outcome.skipped} skipped` : ''
    const counts = `${String(outcome.passed).padStart(5)} passed ${String(outcome.failed).padStart(3)} failed${skipped}`
    const line = `${step.name.padEnd(16)} ${counts} ${secondsText(since(startedAt))}`
    context.report(line)
    lines.push(`  ${line}`)
  }
  const sum = (what: 'passed' | 'failed' | 'skipped') => outcomes.reduce((all, one) => all + one[what], 0)
  const slowest = slowestFiles(outcomes.flatMap(({ files }) => files))
  const skipped = sum('skipped') > 0 ? `, ${sum('skipped')} skipped` : ''
  const total = `${sum('passed')} passed, ${sum('failed')} failed${skipped} in ${since(beganAt).toFixed(0)} s`
  const failures = outcomes.flatMap((outcome) => outcome.failures)
  const failed = failures.length === 0 ? [] : ['Failed:', ...failures, '']
  context.print(['', ...slowest, ...failed, ...lines, '', total].join('\n'))
  return sum('failed') === 0 && !context.signal.aborted
}
