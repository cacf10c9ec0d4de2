import { askGaps, askUsageUpTo, readCutoff } from '@weir/clickhouse/billing-queries.ts'
import type { ClickHouseClient } from '@weir/clickhouse/connect.ts'
import { listInvoices, readInvoice, readInvoicesOf, storeInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { hasChange, readFormerPolicy, readPoliciesIn, readPricedSubjects } from '@weir/clickhouse/policy-history.ts'
import { topics } from '@weir/contracts/topics.ts'
import type { Ledger } from './close-month.ts'

/** Returns the ledger of this ClickHouse. */
export const openLedger = (client: ClickHouseClient): Ledger => ({
  askCompleteness: () => readCompleteness(client, topics.decisions),
  askGaps: askGaps.bind(undefined, client, topics.decisions),
  readCutoff: readCutoff.bind(undefined, client),
  askUsageUpTo: askUsageUpTo.bind(undefined, client),
  readInvoice: readInvoice.bind(undefined, client),
  readInvoicesOf: readInvoicesOf.bind(undefined, client),
  listInvoices: listInvoices.bind(undefined, client),
  readFormerPolicy: readFormerPolicy.bind(undefined, client, topics.policy),
  readPoliciesIn: readPoliciesIn.bind(undefined, client, topics.policy),
  readPricedSubjects: readPricedSubjects.bind(undefined, client, topics.policy),
  hasChange: hasChange.bind(undefined, client, topics.policy),
  storeInvoice: storeInvoice.bind(undefined, client),
})
