import { readExportCursor } from '@weir/core/prices/export-cursor.ts'
import { expect, it } from 'vitest'
import { openConsole, smallPolicy } from '../testing/open-console.ts'
import type { ExportQuestion } from './billing-queries.ts'

const line = { name: 'all', measure: 'units', tiers: [{ unit_amount: '0.5' }] }
const topicId = '6f1c3c86-6a0b-5a0e-9a39-6f7d1f3b2c55'
const ten = Date.parse('2026-11-21T10:00:00Z')
const used = (subject: string, hourMs: number, units: bigint) => ({
  subject,
  hourMs,
  usage: [{ route: '', units, decisions: 1n }],
})

async function withUsage() {
  const asked: ExportQuestion[] = []
  const opened = openConsole({
    askCompleteness: async () => ({ completeThroughMs: ten + 3_600_000 + 59_000, silent: [] }),
    async askExport(question) {
      asked.push(question)
      return [used('gone', ten, 5n), used('payer', ten, 7n), used('nobody', ten, 2n)]
    },
    readCountedOffsets: async () => [[topicId, 0, '41']],
    readFormerPolicies: async (subjects) => {
      expect(subjects).toEqual(['gone', 'nobody'])
      const entities = Object.entries({
        price: ['old', { currency: 'EUR', lines: [{ ...line, name: 'former' }] }],
        plan: ['paid', { limits: [], prices: 'old' }],
        subject: ['gone', { plan: 'paid' }],
      }).map(([kind, [name, body]]) => ({ kind, name: String(name), body: JSON.stringify(body) }))
      return new Map([['gone', { entities }]])
    },
  })
  await opened.applyFile(`${smallPolicy}  payer: { sha256: ${'c'.repeat(64)}, scopes: [billing] }\n`)
  await opened.ask('PUT /v1/prices/api', { body: { currency: 'EUR', lines: [line] } })
  await opened.ask('PUT /v1/subjects/payer', { body: { plan: 'free', prices: 'api' } })
  return { ...opened, asked }
}

it('exports whole hours by the price lists in force, or that a deleted subject had, and names what none has', async () => {
  const { ask, asked } = await withUsage()
  const { cursor, ...answer } = (await ask('/v1/usage/export?from=2026-11-21T09:00:00Z')).json()
  expect(answer).toMatchObject({
    from: '2026-11-21T09:00:00.000Z',
    to: '2026-11-21T11:00:00.000Z',
    next: null,
    unpriced: { units: '2', decisions: '1' },
    items: [
      { subject: 'gone', line: 'former', quantity: '5', correction: false },
      { subject: 'payer', line: 'all', quantity: '7', correction: false, hour: '2026-11-21T10:00:00.000Z' },
    ],
  })
  const until = { fromMs: ten - 3_600_000, toMs: ten + 3_600_000, counted: [[topicId, 0, '41']] }
  expect(readExportCursor(cursor)).toEqual(until)
  expect(asked).toEqual([{ since: undefined, until, after: undefined, rowsMax: 100 }])

  // What comes later is a correction where the hour was exported before.
  const { items } = (await ask(`/v1/usage/export?since=${cursor}`)).json()
  expect(items.map(({ correction }: { correction: boolean }) => correction)).toEqual([true, true])
  expect(items[0].id).not.toBe(answer.items[0].id)
  expect(asked[1]).toMatchObject({ since: until, until })
})

it('goes on behind the last subject and hour of a full page, of the same export alone', async () => {
  const { ask, asked } = await withUsage()
  const { cursor, next } = (await ask('/v1/usage/export?from=2026-11-21T09:00:00Z&limit=3')).json()
  const page = await ask(`/v1/usage/export?until=${cursor}&after=${next}&limit=3`)
  expect(page.statusCode).toBe(200)
  expect(asked[1]?.after).toEqual({ subject: 'nobody', hourMs: ten })
  const other = await ask(`/v1/usage/export?since=${cursor}&until=${cursor}&after=${next}`)
  expect([other.statusCode, other.json().type]).toEqual([400, 'urn:weir:problem:cursor-invalid'])
})

it.each([
  ['', 'needs `from`'],
  ['?from=2026-11-21T09:30:00Z', 'full hour'],
  ['?from=yesterday', 'from must be like'],
  ['?since=x', '`since` is not an export cursor'],
  ['?until=x', '`until` is not an export cursor'],
])('%j is refused: %s', async (query, words) => {
  const { ask } = await withUsage()
  const answer = await ask(`/v1/usage/export${query}`)
  expect([answer.statusCode, answer.json().detail]).toEqual([400, expect.stringContaining(words)])
})

it('refuses cursors that are not of one chain', async () => {
  const { ask } = await withUsage()
  const of = async (from: string) => (await ask(`/v1/usage/export?from=${from}`)).json().cursor
  const [one, two] = [await of('2026-11-21T09:00:00Z'), await of('2026-11-21T10:00:00Z')]
  for (const query of [`since=${one}&until=${two}`, `since=${one}&from=2026-11-21`]) {
    expect((await ask(`/v1/usage/export?${query}`)).statusCode).toBe(400)
  }
})
