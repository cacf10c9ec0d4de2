import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { afterAll, beforeEach, type RunnerTask, type RunnerTestCase } from 'vitest'

/** Where `write-table.ts` beside the tests finds what the last run counted. */
export const attemptsFile = join(projectRoot, '.weir', 'tests', 'attempts.jsonl')
/** The document whose table has a row for every area and file. */
export const securityPage = join(projectRoot, 'docs', 'security.md')

/** One line of the table: attacks on one area that the tests of one file make. */
export interface AttemptsRow {
  readonly area: string
  readonly attempts: number
  /** What each attempt must leave true. */
  readonly holds: string
  /** From the project's root. */
  readonly file: string
}

export const lineOf = ({ area, attempts, holds, file }: AttemptsRow): string =>
  `| ${area} | ${attempts.toLocaleString('en-US')} | ${holds} | [${file.replace(/^test\/(?:servers|nightly)\//, '')}](../${file}) |`

const testsOf = (task: RunnerTask): readonly RunnerTask[] =>
  task.type === 'suite' ? task.tasks.flatMap(testsOf) : [task]

/**
 * Counts every test of the suite that calls it as one attempt on `area`, keeps the sum for the table of
 * docs/security.md, and fails if that table has another. A run that leaves tests of the file out, or in which one
 * fails, counts nothing.
 */
export function countAttempts(area: string, holds: string): void {
  const tests: RunnerTestCase[] = []
  beforeEach(({ task }) => void tests.push(task))
  afterAll(() => {
    const [first] = tests
    if (first === undefined || testsOf(first.file).some(({ mode }) => mode !== 'run')) return
    if (tests.some(({ result }) => result?.state !== 'pass')) return
    const row = { area, attempts: tests.length, holds, file: relative(projectRoot, first.file.filepath) }
    mkdirSync(dirname(attemptsFile), { recursive: true })
    appendFileSync(attemptsFile, `${JSON.stringify(row)}\n`)
    if (readFileSync(securityPage, 'utf8').includes(`${lineOf(row)}\n`)) return
    throw new Error(`docs/security.md lacks: ${lineOf(row)}\nRun "node test/servers/security/write-table.ts".`)
  })
}
