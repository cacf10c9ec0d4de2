import { appendFileSync } from 'node:fs'
import { afterAll } from 'vitest'

/** The file that the table of results is written to; undefined where nobody asks for one. */
export const reachTable = process.env.WEIR_TEST_REACH_TABLE

/** The credentials of one subject that are tried, as columns of the table. */
export const reachCredentials = ['a portal token', 'its own key', 'a token with subjects'] as const
type ReachCredential = (typeof reachCredentials)[number]

const rowOf = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
const head = rowOf(['#', 'Attempt', 'Must be', ...reachCredentials])
const rule = rowOf(['---', '---', '---', ...reachCredentials.map(() => '---')])

/**
 * Appends, after the last test of a file, a row for each attempt with what each credential got: `sort -uV` makes one
 * table of the rows of several files. Returns what a test calls with each result.
 */
export function keepReachTable() {
  const rows = new Map<string, Partial<Record<ReachCredential, string>>>()
  afterAll(() => {
    if (reachTable === undefined || rows.size === 0) return
    const lines = [...rows].map(
      ([about, got]) => `${about}${reachCredentials.map((one) => ` ${got[one] ?? ''} |`).join('')}`,
    )
    appendFileSync(reachTable, `${[head, rule, ...lines].join('\n')}\n`)
  })
  return (
    { number, attempt, must }: { readonly number: number; readonly attempt: string; readonly must: string | number },
    credential: ReachCredential,
    got: string,
  ): void => {
    const about = rowOf([String(number), attempt.replaceAll('|', '\\|'), String(must)])
    rows.set(about, { ...rows.get(about), [credential]: got })
  }
}
