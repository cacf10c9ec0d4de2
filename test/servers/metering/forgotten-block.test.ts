import { quoted } from '@weir/clickhouse/audit/rollups.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { endSessions, newJournal, once, openMeteringStack, settled } from './open-metering.ts'

const stack = await forFile(openMeteringStack())

interface Totals {
  readonly raw: string
  readonly total: string
  readonly numbered: string
}

/** Of all rows, by the raw table, by the rollup that knows no subjects, and up to which offset by weir.numbers. */
async function totals() {
  const [row] = await stack.rows<Totals>(
    `SELECT sum(count) AS raw, (SELECT sum(count) FROM weir.usage_total_15m) AS total,
       toInt64((SELECT max(to_offset) FROM weir.numbers)) - toInt64(max(offset)) AS numbered FROM weir.decisions`,
  )
  return row
}

const remove = (table: string, rows: string) =>
  `DELETE FROM weir.${table} WHERE ${rows} SETTINGS lightweight_deletes_sync = 2`

/**
 * What a server that was killed may leave behind: its list of tokens and its parts do not agree, in one of the tables.
 */
const damages: readonly [name: string, sql: (subjects: string, journal: string) => readonly string[]][] = [
  ['no rows', (subjects) => [remove('decisions', `subject IN (${subjects})`)]],
  [
    'no numbers, and not in a rollup',
    (subjects, journal) => [
      remove('numbers', `journal = '${journal}'`),
      ...['usage_1m', 'usage_15m', 'units_15m', 'limits_15m'].map((table) => remove(table, `subject IN (${subjects})`)),
      remove('usage_total_15m', '1'),
    ],
  ],
  ['every row twice', (subjects) => [twice('decisions', `subject IN (${subjects})`)]],
  ['twice in rollups', (subjects) => [twice('usage_1m', `subject IN (${subjects})`), twice('usage_total_15m', '1')]],
]

const twice = (table: string, rows: string) =>
  `INSERT INTO weir.${table} SELECT * FROM weir.${table} WHERE ${rows} SETTINGS insert_deduplicate = 0`

describe('a block that is not in every table once is repaired when it is inserted again', () => {
  test.each(damages)('%s', async (_, damage) => {
    const [journal, second] = [newJournal("o'hare\\"), newJournal()]
    // A block of one partition or two, of which no process has all afterwards.
    await stack.send(journal.take(200))
    await stack.send(second.take(100, 1), 1)
    const victim = await stack.start({ WEIR_CRASH_AT: 'metering.insert' })
    onTestFinished(() => victim.kill('SIGKILL'))
    await victim.ended
    await endSessions(stack.options)
    const subjects = [journal, second].map(({ subject }) => quoted(subject)).join(', ')
    for (const query of damage(subjects, journal.id)) await stack.client.command({ query })

    const [heir, other] = await Promise.all([stack.start(), stack.start()])
    onTestFinished(() => Promise.all([heir.kill('SIGKILL'), other.kill('SIGKILL')]).then(() => undefined))
    await stack.send(journal.take(50))
    // Some tables have too much at first, so it is not enough that they have as much as they should.
    const until = { timeout: 60_000, interval: 200 }
    await expect.poll(() => settled(stack, journal.subject, 0), until).toEqual(once(250))
    await expect.poll(() => settled(stack, second.subject, 0), until).toEqual(once(100))
    const { raw } = (await totals()) ?? {}
    expect(await totals()).toEqual({ raw, total: raw, numbered: '0' })
    await Promise.all([heir.kill('SIGTERM'), other.kill('SIGTERM')])
    expect(heir.said() + other.said()).not.toContain('sequence numbers never arrived')
  })
})
