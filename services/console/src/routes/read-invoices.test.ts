import { hash } from 'node:crypto'
import type { StoredInvoice } from '@weir/clickhouse/invoice-queries.ts'
import { invoiceIdOf, makeInvoice } from '@weir/core/prices/invoice.ts'
import { pricesOf } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { describe, expect, it } from 'vitest'
import { createMemoryLedger } from '../testing/memory-ledger.ts'
import { nowMs, openConsole, smallPolicy } from '../testing/open-console.ts'

const priced = requirePolicy(
  `
version: 1
prices: { api: { currency: EUR, flat: "9.00", lines: [
  { name: all, measure: units, included: 1, tiers: [{ up_to: 2, unit_amount: "0.5" }, { unit_amount: "0.25" }] } ] } }
plans: { paid: { limits: [], prices: api } }
subjects: { acme: { plan: paid }, bolt: { plan: paid } }`,
  'test',
)

function invoiceOf(subject: string, month: string): StoredInvoice {
  const found = priced.subjects.get(subject) ?? expect.fail('no subject')
  const prices = pricesOf(priced, found) ?? expect.fail('no prices')
  const period = { name: month, from: `${month}-01T00:00:00.000Z`, to: `${month}-28T00:00:00.000Z` }
  const invoice = makeInvoice({
    ...{ id: invoiceIdOf(subject, month), subject, closedAt: '2026-11-01T00:00:00.000Z', prices },
    period: { ...period, time_zone: 'UTC', anchor: '1' },
    cutoff: [{ topic_id: 't', partition: '0', offset: '90001' }],
    acceptedGaps: { reason: 'a disk was lost', missing: ['the journal j-secret is silent'] },
    usage: [{ route: '', units: 7n, decisions: 7n }],
    earlier: [
      {
        invoiced: { period: '2026-08-01T00:00:00.000Z', prices, units: 9n, decisions: 1n, amount: 10_000_000_000_000n },
        usage: [{ route: '', units: 1n, decisions: 1n }],
      },
    ],
  })
  const document = JSON.stringify(invoice)
  const { name: _, ...bounds } = period
  const stored = { id: invoice.id, subject, period: month, ...bounds, closed_at: invoice.closed_at }
  return { ...stored, sha256: hash('sha256', document, 'hex'), document }
}
const all = [invoiceOf('acme', '2026-09'), invoiceOf('acme', '2026-10'), invoiceOf('bolt', '2026-10')]

async function open() {
  const { ledger } = createMemoryLedger(nowMs)
  for (const one of all) await ledger.storeInvoice(one)
  const opened = openConsole({ ledger })
  const limited = `  limited: { sha256: ${hash('sha256', 'limited-token', 'hex')}, scopes: [usage], subjects: [acme] }\n`
  await opened.applyFile(`${smallPolicy}${limited}`)
  const asAcme = (path: string) => opened.ask(path, { token: 'limited-token' })
  return { ...opened, asAcme }
}
const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)

describe('GET /v1/invoices', () => {
  it('lists by subject and period, of a month or a subject, in pages that only their own question continues', async () => {
    const { ask } = await open()
    expect(idsOf((await ask('/v1/invoices')).json().items)).toEqual(idsOf(all))
    expect(idsOf((await ask('/v1/invoices?period=2026-10')).json().items)).toEqual(idsOf(all.slice(1)))
    expect(idsOf((await ask('/v1/invoices?period=2026-10&subject=bolt')).json().items)).toEqual(idsOf(all.slice(2)))
    const { next } = (await ask('/v1/invoices?limit=2')).json()
    const last = await ask(`/v1/invoices?limit=2&after=${next}`)
    expect([idsOf(last.json().items), last.json().next]).toEqual([idsOf(all.slice(2)), null])
    const other = await ask(`/v1/invoices?period=2026-10&after=${next}`)
    expect([other.statusCode, other.json().type]).toEqual([400, 'urn:weir:problem:cursor-invalid'])
  })

  it('shows a caller who is limited to subjects what is theirs, and nothing of others', async () => {
    const { asAcme } = await open()
    expect(idsOf((await asAcme('/v1/invoices')).json().items)).toEqual(idsOf(all.slice(0, 2)))
    for (const subject of ['bolt', 'nobody']) {
      for (const path of ['/v1/invoices', '/v1/invoices/preview']) {
        const { statusCode, body } = await asAcme(`${path}?subject=${subject}`)
        expect([statusCode, JSON.parse(body).type]).toEqual([403, 'urn:weir:problem:subject-forbidden'])
      }
    }
    const [bolts, nobodys] = [invoiceIdOf('bolt', '2026-10'), invoiceIdOf('nobody', '2026-10')]
    const answers = await Promise.all([bolts, nobodys].map((id) => asAcme(`/v1/invoices/${id}`)))
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([404, 404])
    expect(answers[0]?.body).toBe(answers[1]?.body)
  })

  it('hides offsets and the names of what is missing from its own subject, and says the same at every time', async () => {
    const { ask, asAcme } = await open()
    const path = `/v1/invoices/${invoiceIdOf('acme', '2026-10')}`
    const [one, again] = [await asAcme(path), await asAcme(path)]
    expect(one.body).not.toMatch(/90001|cutoff|j-secret/)
    expect(one.json()).toMatchObject({ accepted_gaps: { reason: 'a disk was lost' }, quote: { total: '11.00' } })
    expect([again.body, again.headers.etag]).toEqual([one.body, `"${hash('sha256', one.body, 'hex')}"`])
    expect((await ask(path)).body).toBe(all[1]?.document)
  })

  it('answers as CSV whose amounts come to the total', async () => {
    const { ask, asAcme } = await open()
    const id = invoiceIdOf('acme', '2026-10')
    const csv = await ask(`/v1/invoices/${id}?format=csv`)
    expect(csv.headers['content-type']).toBe('text/csv; charset=utf-8; header=present')
    const [head, ...rows] = csv.body.trimEnd().split('\r\n')
    expect(head).toBe(
      'invoice,subject,period,from,to,kind,name,measure,included,up_to,quantity,unit_amount,flat_amount,amount,currency',
    )
    const of = `${id},acme,2026-10,2026-10-01T00:00:00.000Z,2026-10-28T00:00:00.000Z`
    expect(rows).toEqual([
      `${of},line,all,units,1,,7,,,2.00,EUR`,
      `${of},tier,all,units,,2,2,0.5,0,1,EUR`,
      `${of},tier,all,units,,,4,0.25,0,1,EUR`,
      `${of},flat,,,,,,,,9.00,EUR`,
      `${of},minimum,,,,,,,,0.00,EUR`,
      `${of},adjustment,2026-08-01T00:00:00.000Z,units,,,-8,,,-1.00,EUR`,
      `${of},total,,,,,,,,10.00,EUR`,
    ])
    expect((await ask(`/v1/invoices/${id}`, { headers: { accept: 'text/csv' } })).body).toBe(csv.body)
    const asked = { headers: { accept: 'text/csv' } }
    expect((await ask(`/v1/invoices/${id}?format=json`, asked)).body).toBe(all[1]?.document)
    expect((await asAcme(`/v1/invoices/${id}?format=csv`)).body).toBe(csv.body)
  })

  it.each(['none', 'urn:uuid:2ed6657d-e927-568b-95e1-2665a8aea6a2'])('%s is no id of an invoice', async (id) => {
    const { ask } = await open()
    expect((await ask(`/v1/invoices/${encodeURIComponent(id)}`)).statusCode).toBe(400)
  })
})
