import type { UnitQuery } from '@weir/api/query/unit-query.ts'
import type { UnitRow as ShownUnitRow } from '@weir/api/usage.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import type { RollupSource } from './rollup-sql.ts'
import { askRows, type BoundPosition, comparedSums, wholeAnswer } from './usage-queries.ts'

/** A row before it is shown: sums of an earlier span stand beside the others. */
export type UnitRow = Omit<ShownUnitRow, 'previous'> &
  Readonly<Partial<Record<'previous_quantity' | 'previous_count', string>>>

/** A column of the rollup. Labels are a list of `name=value`, whose names have no character to escape. */
function columnOf(name: string): string {
  if (name === 'dimension') return "arrayJoin(arrayMap(label -> splitByChar('=', label)[1], u.dims))"
  const label = name === 'model' ? name : /^dimension\.(.*)$/.exec(name)?.[1]
  if (label === undefined) return `u.${name}`
  return `substring(arrayFirst(label -> startsWith(label, '${label}='), u.dims), ${label.length + 2})`
}

/** The table that answers questions about units. In 128 bits: over years and all subjects, 64 might not do. */
export const unitSource = (question: UnitQuery): RollupSource => ({
  table: 'units_15m',
  bucketMs: 900_000,
  columnOf,
  parents: 'u.parents',
  ...comparedSums(question, (of) => ({
    quantity: `sumIf(toInt128(u.quantity), ${of})`,
    count: `sumIf(u.count, ${of})`,
  })),
})

/** Answers from the rollup, by whole quarter hours; rejects with ClickHouse's error. */
export const askUnits = (
  client: ClickHouseClient,
  reach: Reach,
  question: UnitQuery,
  position: BoundPosition = wholeAnswer,
): Promise<UnitRow[]> => askRows(client, unitSource(question), reach, question, position)

/** Sums everything that a question asks for; undefined for several units, whose quantities have no sum. */
export async function askUnitTotals(
  client: ClickHouseClient,
  reach: Reach,
  question: UnitQuery,
): Promise<Omit<UnitRow, 'ts'> | undefined> {
  if (question.only.unit?.length !== 1) return undefined
  const total = { ...question, by: [], step: 'total', ranking: undefined } as const
  const [row] = await askUnits(client, reach, total, { rowsMax: 1 })
  return row ?? { quantity: '0', count: '0' }
}
