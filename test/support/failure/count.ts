import { type ClickHouseClient, connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { packId } from './ledger.ts'

/** What ClickHouse holds, asked with a connection of the tests' own. Every number is of `sum(count)`, never of rows. */
export type Counter = ReturnType<typeof openCounter>

const rollups = ['usage_1m', 'usage_15m', 'usage_total_15m'] as const
const buckets = {
  usage_1m: { start: 'toStartOfMinute', by: 'subject, key_id, plan, route, method, outcome, denied_by' },
  usage_15m: { start: 'toStartOfFifteenMinutes', by: 'subject, key_id, plan, route, method, outcome, denied_by' },
  usage_total_15m: { start: 'toStartOfFifteenMinutes', by: 'plan, route, method, outcome, denied_by' },
} as const

/** Raw rows and the rollup's, with opposite signs: what does not come to nothing differs. */
const differenceQuery = (rollup: (typeof rollups)[number]) => {
  const { start, by } = buckets[rollup]
  return `SELECT count() AS n FROM (
    SELECT bucket, ${by} FROM (
      SELECT toDateTime(${start}(ts), 'UTC') AS bucket, ${by}, toInt64(count) + count_adjustment AS c, toInt64(cost * count) + adjustment AS u
      FROM weir.decisions
      UNION ALL SELECT ts AS bucket, ${by}, -toInt64(count) AS c, -toInt64(cost) AS u FROM weir.${rollup}
    ) GROUP BY bucket, ${by} HAVING sum(c) != 0 OR sum(u) != 0)`
}

const repeatedQuery = `SELECT greatest(
  count() - uniqExact(journal, partition, seq), count() - uniqExact(topic_id, partition, offset)) AS n FROM weir.decisions`

/** A record that stands for others has a number of its own; a mark says how far a journal was numbered in all. */
const holesQuery = `SELECT sum(top - known) AS n FROM (
  SELECT max(above) AS top, uniqExactIf(seq, is_known) AS known FROM (
    SELECT journal, partition, seq, seq + 1 AS above, true AS is_known FROM weir.decisions
    UNION ALL SELECT journal, partition, from_seq AS seq, from_seq + 1 AS above, true AS is_known FROM weir.gaps
      WHERE topic = 'weir.decisions.v1' AND cause IN ('journal_full', 'refused')
    UNION ALL SELECT journal, partition, 0 AS seq, max(seq) AS above, false AS is_known FROM weir.marks
      WHERE topic = 'weir.decisions.v1' GROUP BY journal, partition
  ) GROUP BY journal, partition)`

/** Decided by the load, which knows every answer; not by applications that lease. */
const isLoads = "plan != 'leased'"

async function one(client: ClickHouseClient, query: string): Promise<number> {
  const [row] = await readRows<{ n: string | number }>(client, query)
  return Number(row?.n ?? 0)
}

export function openCounter(url: string) {
  const client = connectClickhouse(url, 'failure-suite', 60_000)
  const sum = (table: string, column = 'count') =>
    one(client, `SELECT sum(${column}) AS n FROM weir.${table} WHERE ${isLoads}`)
  return {
    /** Decisions in the raw table; undefined while ClickHouse does not answer. */
    rawTotal: () => sum('decisions').catch(() => undefined),
    /** Whether one of these decisions is there. */
    async hasAny(uuids: readonly string[]) {
      const list = uuids.map((uuid) => `'${uuid}'`).join(', ')
      const query = `SELECT count() AS n FROM weir.decisions WHERE id IN (${list})`
      return (await one(client, query).catch(() => 0)) > 0
    },
    /** By decision, of rows since then. */
    async rawById(sinceTs: string) {
      const query = `SELECT id, count(), sum(count) FROM weir.decisions WHERE ts >= '${sinceTs}' AND count > 0 AND ${isLoads} GROUP BY id`
      const text = await (await client.query({ query, format: 'TabSeparated' })).text()
      const found = new Map<string, { rows: number; count: number }>()
      for (const line of text.split('\n')) {
        const [id = '', rows, count] = line.split('\t')
        if (id !== '') found.set(packId(id), { rows: Number(rows), count: Number(count) })
      }
      return found
    },
    /** Without what corrections took back, which no record's count has. */
    async rollupTotals() {
      const adjusted = await sum('decisions', 'count_adjustment')
      const total = async (name: string) => [name, (await sum(name)) - adjusted] as const
      return Object.fromEntries(await Promise.all(rollups.map(total)))
    },
    /** Buckets of rollups that differ from the raw rows, in count or in units. */
    async rollupDifferences() {
      const found = await Promise.all(rollups.map((rollup) => one(client, differenceQuery(rollup))))
      return found.reduce((all, few) => all + few, 0)
    },
    /** Rows whose number, or whose place in Kafka, another row has too. */
    repeatedRows: () => one(client, repeatedQuery),
    /** Numbers that no row has, up to the highest of each journal and partition. */
    holes: () => one(client, holesQuery),
    /** What a subject's decisions cost in all, corrections included; and how many rows correct any. */
    unitsOf: (subject: string) =>
      one(
        client,
        `SELECT sum(toInt64(cost * count) + adjustment) AS n FROM weir.decisions WHERE subject = '${subject}'`,
      ),
    /** What a subject was admitted, corrections included: decisions and units. */
    async admittedOf(subject: string) {
      const query = `SELECT toInt32(sum(toInt64(count) + count_adjustment)) AS counted,
        toInt32(sum(toInt64(cost * count) + adjustment)) AS units
        FROM weir.decisions WHERE subject = '${subject}' AND outcome = 'allow'`
      const [row] = await readRows<{ readonly counted: number; readonly units: number }>(client, query)
      return row ?? { counted: 0, units: 0 }
    },
    correctionsOf: (subject: string) =>
      one(client, `SELECT countIf(adjustment != 0) AS n FROM weir.decisions WHERE subject = '${subject}'`),
    /** Tokens that a subject's decisions hold, and those that were settled; and the decisions that are still open. */
    async tokensOf(subject: string) {
      const query = `SELECT toString(sumIf(held['tokens'], count > 0)) AS held, toString(sumIf(units['tokens'], count = 0)) AS settled,
        groupArrayIf(toString(id), count > 0) AS ids, groupArrayIf(toString(corrects), count = 0) AS corrected
        FROM weir.decisions WHERE subject = '${subject}'`
      const [row] = await readRows<{ held: string; settled: string; ids: string[]; corrected: string[] }>(client, query)
      const { held, settled, ids, corrected } = row ?? { held: '0', settled: '0', ids: [], corrected: [] }
      return { held: Number(held), settled: Number(settled), open: ids.filter((id) => !corrected.includes(id)) }
    },
    /** Decisions that gaps say were answered without a record. */
    decisionsInGaps: () => one(client, "SELECT sum(count) AS n FROM weir.gaps FINAL WHERE cause = 'journal_full'"),
    /** Records of decisions whose numbers gaps name as lost. */
    lostRecords: () =>
      one(client, "SELECT sum(count) AS n FROM weir.gaps FINAL WHERE cause = 'lost' AND topic = 'weir.decisions.v1'"),
    close: () => client.close(),
  }
}

/**
 * Answers by decision against the rows: by id how many are missing; what the rows have beyond the answers; rows beyond
 * one per decision.
 */
function compareWithRaw(
  answers: ReadonlyMap<string, number>,
  raw: ReadonlyMap<string, { readonly rows: number; readonly count: number }>,
) {
  const missing = new Map<string, number>()
  let [beyond, repeated] = [0, 0]
  for (const [id, count] of answers) {
    const short = count - (raw.get(id)?.count ?? 0)
    if (short > 0) missing.set(id, short)
  }
  for (const [id, { rows, count }] of raw) {
    beyond += Math.max(0, count - (answers.get(id) ?? 0))
    repeated += rows - 1
  }
  return { missing, beyond, repeated }
}

/** A row that is on its way is there within this time after everything else is. */
const lateMs = 90_000

/**
 * Compares once no id is missing, or when it is certain that one is: rows of cut off requests stand in for late ones in
 * any sum.
 */
export async function compareWhenThere(
  counter: Counter,
  answers: ReadonlyMap<string, number>,
  sinceTs: string,
  deadlineMs = lateMs,
) {
  const compare = async () => compareWithRaw(answers, await counter.rawById(sinceTs))
  let compared = await compare()
  const isThere = async () => {
    if (compared.missing.size > 0) compared = await compare()
    return compared.missing.size === 0
  }
  await waitUntil(isThere, { deadlineMs, everyMs: 1_000 })
  return compared
}
