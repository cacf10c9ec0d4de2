import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect } from 'vitest'
import type { SubjectExchanges } from './exchanges.ts'
import type { Stack } from './stack.ts'
import type { openStackRedis } from './stack-redis.ts'

/** After the last exchange every slot is free within this time. */
const freeWithinMs = 35_000
/** What is on its way is in ClickHouse within this time. */
const bookedWithinMs = 180_000

/** What the books know of a subject's tokens: settled or used, else held. */
const booksQuery = `SELECT d.subject AS subject, toString(sum(d.units['tokens'] + if(notEmpty(c.units), c.units['tokens'], toInt64(d.held['tokens'])))) AS units
  FROM weir.decisions AS d
  LEFT ANY JOIN (SELECT corrects AS id, any(units) AS units FROM weir.decisions WHERE count = 0 GROUP BY id) AS c ON c.id = d.id
  WHERE d.count > 0 AND d.outcome = 'allow' AND d.charged = 'yes' GROUP BY subject`

const slotsKeys = (subject: string) => [
  `weir:1:{${subject}}:in-flight`,
  `weir:1:{_global}:streams:attribute.user=${subject}`,
]

/** Waits until Redis counts no slot any more. Returns how many there were, and how long that took. */
export async function untilFree(redis: ReturnType<typeof openStackRedis>, subjects: readonly string[]) {
  const startedMs = performance.now()
  const slotsOf = async (key: string) => {
    const bytes = await redis.getBuffer(key)
    let slots = 0
    for (let from = 1; bytes !== null && from < bytes.length; from += 12)
      if (bytes.readUInt32BE(from) * 1_000 > Date.now()) slots += bytes.readDoubleBE(from + 4)
    return slots
  }
  const keys = subjects.flatMap(slotsKeys)
  const taken = async () => (await Promise.all(keys.map(slotsOf))).reduce((sum, n) => sum + n, 0)
  const slots = await taken()
  await waitUntil(async () => (await taken()) === 0, { deadlineMs: freeWithinMs, everyMs: 200 })
  expect(await taken()).toBe(0)
  return { slots, ms: Math.round(performance.now() - startedMs) }
}

/**
 * Tokens that are counted and in no record: of checks that were charged and never answered, and up to `raised` that a
 * console counted again.
 */
export async function beyondBooks(
  { addresses }: Pick<Stack, 'addresses'>,
  all: readonly SubjectExchanges[],
  raised: (one: SubjectExchanges) => number,
): Promise<string> {
  const counted = new Map<string, number>()
  for (const one of all) {
    const { used, remaining } = await one.peek()
    expect([one.subject, used + remaining], 'nothing is held').toEqual([one.subject, one.size])
    counted.set(one.subject, used)
  }
  const clickhouse = connectClickhouse(addresses.clickhouse, 'failure-suite', 60_000)
  let differences: readonly string[] = []
  let [more, unrecorded] = [0, 0]
  // Books that lag behind come to the counts in the end.
  const areEqual = async () => {
    const rows = await readRows<{ subject: string; units: string }>(clickhouse, booksQuery).catch(() => [])
    const books = new Map(rows.map(({ subject, units }) => [subject, Number(units)]))
    ;[more, unrecorded] = [0, 0]
    differences = all.flatMap((one) => {
      const { subject } = one
      const unknown = one.unknown + raised(one)
      const beyond = (counted.get(subject) ?? 0) - (books.get(subject) ?? 0)
      more += beyond
      unrecorded += unknown
      return beyond < 0 || beyond > unknown ? [`${subject}: ${beyond} of at most ${unknown}`] : []
    })
    return differences.length === 0
  }
  await waitUntil(areEqual, { deadlineMs: bookedWithinMs, everyMs: 1_000 })
  await clickhouse.close()
  expect(differences).toEqual([])
  return `${more} tokens counted beyond the books, of at most ${unrecorded} that may be`
}
