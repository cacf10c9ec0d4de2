import type { ChangeRecordV1 } from '@weir/contracts/policy.v1.ts'
import { formatTs } from '@weir/contracts/timestamp.ts'
import type { EntityChange, EntityKind, JsonObject } from '@weir/policy/entities.ts'
import type { PolicyHistoryRow } from './history-queries.ts'

/** What the limits and prices of a request follow from. Others are left out: some of them hold credentials. */
const historyKinds = ['limit', 'plan', 'route', 'price', 'rateCard', 'subject'] as const satisfies readonly EntityKind[]
/** One of `historyKinds`. */
type HistoryKind = (typeof historyKinds)[number]

/** Whether a kind is one of `historyKinds`. */
export const isHistoryKind = (kind: string): kind is HistoryKind => historyKinds.some((one) => one === kind)

/** Of a subject only what limits it: whom to tell, and with which secret, stays out. */
const subjectSettings = ['plan', 'timeZone', 'anchor', 'limits', 'prices', 'selfService', 'suspended']

/** What the history holds of an entity's body. */
export const historyBody = (kind: HistoryKind, body: JsonObject): JsonObject =>
  kind === 'subject'
    ? Object.fromEntries(Object.entries(body).filter(([name]) => subjectSettings.includes(name)))
    : body

/** An entity's row, before the change that it is part of is known; undefined for a kind that the history leaves out. */
export function entityRow({
  kind,
  name,
  entity,
}: EntityChange): Pick<PolicyHistoryRow, 'kind' | 'name' | 'body'> | undefined {
  if (!isHistoryKind(kind)) return undefined
  return { kind, name, body: entity === undefined ? '' : JSON.stringify(historyBody(kind, entity.body)) }
}

/** The row of the record that ends a change. */
export function changeRow(
  id: string,
  { by, summary, total }: Pick<ChangeRecordV1, 'by' | 'summary' | 'total'>,
  isOvertaken: boolean,
): Pick<PolicyHistoryRow, 'kind' | 'name' | 'body'> {
  return { kind: isOvertaken ? 'overtaken' : 'change', name: id, body: JSON.stringify({ by, summary, total }) }
}

/** The change that rows are part of, as their columns have it. */
export const changeColumns = (id: string, { at }: Pick<ChangeRecordV1, 'at'>) => ({
  change: id,
  at: formatTs(Date.parse(at)),
})
