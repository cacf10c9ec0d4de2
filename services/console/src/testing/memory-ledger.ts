import type { StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { Ledger } from '../close-month.ts'

/** The price list that every subject has at every time. */
const entities = (subject: string) =>
  Object.entries({
    price: ['api', { currency: 'EUR', lines: [{ name: 'all', measure: 'units', tiers: [{ unit_amount: '1' }] }] }],
    plan: ['paid', { limits: [], prices: 'api' }],
    subject: [subject, { plan: 'paid' }],
  }).map(([kind, [name, body]]) => ({ kind, name: String(name), body: JSON.stringify(body) }))

/** A ledger in memory, in which nothing is missing and each period has two units of one decision. */
export function createMemoryLedger(nowMs: number, overrides: Partial<Ledger> = {}) {
  const stored = new Map<string, StoredInvoice>()
  const asked: string[] = []
  const priced: Period[] = []
  const ledger: Ledger = {
    async askCompleteness() {
      asked.push('completeness')
      return { completeThroughMs: nowMs, silent: [] }
    },
    askGaps: async () => [],
    async readCutoff() {
      asked.push('cutoff')
      return []
    },
    async askUsageUpTo(_, period) {
      priced.push(period)
      return [{ route: '', units: 2n, decisions: 1n }]
    },
    async readInvoice({ subjects }, id) {
      const found = stored.get(id)
      return found !== undefined && (subjects?.includes(found.subject) ?? true) ? found : undefined
    },
    readInvoicesOf: async (subject) => [...stored.values()].filter((one) => one.subject === subject),
    async listInvoices({ subjects }, { subject, period, after, rowsMax }) {
      const key = (one: { subject: string; period: string }) => `${one.subject} ${one.period}`
      return [...stored.values()]
        .filter((one) => subjects?.includes(one.subject) ?? true)
        .filter((one) => (subject ?? one.subject) === one.subject && (period ?? one.period) === one.period)
        .filter((one) => after === undefined || key(one) > key(after))
        .toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
        .slice(0, rowsMax)
    },
    readFormerPolicy: async () => undefined,
    async *readPoliciesIn(subject) {
      yield { entities: entities(subject) }
    },
    readPricedSubjects: async () => [],
    hasChange: async () => true,
    async storeInvoice(invoice) {
      if (!stored.has(invoice.id)) stored.set(invoice.id, invoice)
      return stored.get(invoice.id) ?? invoice
    },
    ...overrides,
  }
  return { ledger, asked, priced, stored }
}
