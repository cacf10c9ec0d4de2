import { randomUUID } from 'node:crypto'
import { Reach } from '@weir/core/usage/reach.ts'
import { type ClickHouseClient, readRows } from './connect.ts'
import { everyReplicaOf } from './every-replica.ts'
import { insertBlock, linesOf } from './insert.ts'
import { withinReach } from './within-reach.ts'

/** An invoice as it is stored: its document is text that never changes. */
export interface StoredInvoice {
  readonly id: string
  readonly subject: string
  readonly period: string
  /** RFC 3339, UTC. */
  readonly from: string
  readonly to: string
  readonly closed_at: string
  readonly sha256: string
  readonly document: string
}

/** An invoice as lists show it. */
export type InvoiceSummary = Omit<StoredInvoice, 'document'>

/** Which invoices a list has, and after which one it begins; an absent part means any. */
export interface InvoiceFilter {
  readonly subject?: string | undefined
  readonly period?: string | undefined
  readonly after?: Pick<StoredInvoice, 'subject' | 'period'> | undefined
  readonly rowsMax: number
}

const iso = (column: string) => `concat(replaceOne(toString(i.${column}), ' ', 'T'), 'Z')`
const summaryColumns = `toString(i.id) AS id, i.subject AS subject, i.period AS period, i.sha256 AS sha256,
  ${iso('from_ts')} AS from, ${iso('to_ts')} AS to, ${iso('closed_at')} AS closed_at`
const columns = `${summaryColumns}, i.document AS document`

/**
 * A server that is killed between noting a token and having the rows knows the token without them for good. All callers
 * then go on to the same next token; one kill takes one of them.
 */
const tokenSuffixes = ['', ':2', ':3']

/**
 * Stores an invoice unless its id has one, and returns the one that is stored: of several callers at the same time all
 * get the same. A crash before the insert leaves nothing; after it, the next call returns what was stored.
 */
export async function storeInvoice(client: ClickHouseClient, invoice: StoredInvoice): Promise<StoredInvoice> {
  const { from, to, ...rest } = invoice
  const read = () => readInvoice(client, Reach.everybody, invoice.id, everyReplicaOf(client, 'invoices'))
  const known = await read()
  if (known !== undefined) return known
  // The table remembers the tokens of its last 10,000 inserts: only so many closings may happen since the look above.
  const lines = linesOf([{ ...rest, from_ts: from, to_ts: to }])
  for (const suffix of tokenSuffixes) {
    const dedupToken = `invoice:${invoice.id}${suffix}`
    await insertBlock(client, { table: 'invoices', dedupToken, requestId: randomUUID(), lines })
    const stored = await read()
    if (stored !== undefined) return stored
  }
  throw new Error(`the invoice ${invoice.id} was inserted and is not there`)
}

/** Returns the invoice of this id; undefined if there is none within the caller's reach. `from`: where it is read. */
export async function readInvoice(
  client: ClickHouseClient,
  reach: Reach,
  id: string,
  from = 'invoices',
): Promise<StoredInvoice | undefined> {
  const { sql, params } = withinReach(reach, 'i.subject')
  const query = `SELECT ${columns} FROM ${from} AS i WHERE ${sql} AND i.id = {id:UUID} LIMIT 1`
  const [found] = await readRows<StoredInvoice>(client, query, { ...params, id })
  return found
}

/** Returns all invoices of a subject, in the order of their periods. */
export const readInvoicesOf = (client: ClickHouseClient, subject: string): Promise<StoredInvoice[]> =>
  readRows<StoredInvoice>(
    client,
    `SELECT ${columns} FROM invoices AS i WHERE i.subject = {subject:String} ORDER BY i.from_ts`,
    { subject },
  )

/** Returns invoices by subject and period, without their documents. */
export function listInvoices(
  client: ClickHouseClient,
  reach: Reach,
  { subject, period, after, rowsMax }: InvoiceFilter,
): Promise<InvoiceSummary[]> {
  const { sql, params } = withinReach(reach, 'i.subject')
  const given: Record<string, unknown> = { ...params, rowsMax }
  const conditions = [sql]
  const add = (condition: string, values: object) => {
    conditions.push(condition)
    Object.assign(given, values)
  }
  if (subject !== undefined) add('i.subject = {subject:String}', { subject })
  if (period !== undefined) add('i.period = {period:String}', { period })
  if (after !== undefined) {
    const values = { afterSubject: after.subject, afterPeriod: after.period }
    add('(i.subject, i.period) > ({afterSubject:String}, {afterPeriod:String})', values)
  }
  const query = `SELECT ${summaryColumns} FROM invoices AS i WHERE ${conditions.join(' AND ')}
    ORDER BY i.subject, i.period LIMIT {rowsMax:UInt32}`
  return readRows<InvoiceSummary>(client, query, given)
}
