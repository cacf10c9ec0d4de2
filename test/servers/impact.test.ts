import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Impact } from '@weir/api/policy.ts'
import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import { buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { createLimitResolver } from '@weir/policy/match/resolve-limits.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, test } from 'vitest'
import { createModelEngine } from '../support/decide-engines.ts'
import { forFile } from '../support/opened.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { runWeir, weirUp } from '../support/weir-up.ts'

const window = (algorithm: string, size: number, length: string, more: object = {}) => ({
  algorithm,
  size,
  window: length,
  ...more,
})
/** What is in force, and what it is edited to. */
const policyOf = (isEdited: boolean) => {
  const pick = <T>(before: T, after: T) => (isEdited ? after : before)
  return {
    version: 1,
    limits: {
      ...(isEdited ? { search: window('fixed_window', 4, '1s') } : {}),
      minute: window('fixed_window', pick(60, 30), '1m'),
      smooth: window('sliding_window', pick(30, 60), '1m'),
      flowing: window('token_bucket', pick(60, 20), '1m', { by: ['key'] }),
      day: { algorithm: 'fixed_window', size: pick(900, 500), period: 'day' },
    },
    plans: {
      minutes: { limits: ['minute', 'day'] },
      smooth: { limits: ['smooth', 'minute'] },
      flowing: { limits: ['flowing'] },
      open: { limits: [] },
    },
    routes: [
      { match: 'POST /search', cost: 3, ...(isEdited ? { limits: ['search'] } : {}) },
      { match: 'GET /one', cost: 1 },
    ],
    subjects: Object.fromEntries([
      ...['minutes', 'smooth', 'flowing'].flatMap((plan) => [1, 2].map((at) => [`${plan}-${at}`, { plan }])),
      ['mover', { plan: pick('open', 'minutes') }],
      ['untouched', { plan: 'open' }],
    ]),
  }
}
const [policy, edited] = [policyOf(false), JSON.stringify(policyOf(true))]

const file = join(tmpdir(), `weir-impact-${process.pid}.yaml`)
await writeFile(file, JSON.stringify(policy))
const weir = await forFile(weirUp(['--policy', file]))
const clickhouse = await forFile(connectClickhouse(weir.line.clickhouse, 'test'))

const askFor = (query: string) =>
  fetch(`${weir.line.console}/v1/policy/impact${query}`, {
    method: 'POST',
    body: edited,
    headers: { authorization: `Bearer ${weir.line.adminToken}`, 'content-type': 'application/yaml' },
  })

async function ask(query = ''): Promise<Impact> {
  const response = await askFor(query)
  const body = await response.json()
  expect([response.status, body]).toEqual([200, expect.anything()])
  return body as Impact
}

interface Row {
  readonly subject: string
  readonly ms: number
  readonly key_id: string
  readonly route: string
  readonly method: string
  readonly cost: number
  readonly count: number
  readonly outcome: string
}
const after = requirePolicy(edited, 'edited')
const limitsOf = createLimitResolver(after)
const periodBoundaries = createBoundaryCache()
const isDecision = (outcome: object | undefined): outcome is Decision => outcome !== undefined && 'allowed' in outcome

/** Sends the recorded requests again, at the times of their records, to limits of the edited policy. */
async function sendAgain(rows: readonly Row[], fromMs: number) {
  const engine = createModelEngine()
  const refused = new Map<string, number>()
  const turned = { to_refused: 0, to_admitted: 0 }
  for (const { subject: id, ms, key_id: keyId, route, method, cost, count, outcome } of rows) {
    const subject = after.subjects.get(id)
    if (subject === undefined) continue
    const limits = limitsOf(subject, after.routes.find(({ template }) => template === route) ?? unmatchedRoute)
    const request = buildLimitRequest({ scope: buildScope({ subject: id, keyId, route, method }), cost, limits })
    for (let at = 0; at < count; at += 1) {
      const boundaries = periodBoundaries('day', 'UTC', 1, ms)
      const decision =
        limits.length === 0
          ? undefined
          : (await engine.decide({ requests: [request], nowMs: ms, boundaries })).outcomes[0]
      const isRefused = isDecision(decision) && !decision.allowed
      if (ms < fromMs) continue
      if (isDecision(decision) && isRefused) {
        refused.set(`${id} ${decision.deniedBy}`, (refused.get(`${id} ${decision.deniedBy}`) ?? 0) + 1)
      }
      if (isRefused && outcome === 'allow') turned.to_refused += 1
      if (!isRefused && outcome === 'deny') turned.to_admitted += 1
    }
  }
  return { refused, turned }
}

const minuteMs = 60_000
const quarterMs = 15 * minuteMs
const hourMs = 60 * minuteMs
const inForce = requirePolicy(JSON.stringify(policy), 'policy')
const beforeLimitsOf = createLimitResolver(inForce)

/** Two days of bursts and quiet times of one subject, as the policy in force decided them. */
async function drawHistory(random: SeededRandom, subject: string, fromMs: number, toMs: number) {
  const engine = createModelEngine()
  const rows: (Row & { readonly denied_by: string })[] = []
  for (let ms = fromMs; ; ) {
    const [length, step] = random.pick<readonly [number, number]>([
      [80, 500],
      [200, 400],
      [10, 20_000],
    ])
    for (let at = 0; at < length; at += 1) {
      ms += random.integer(0, step)
      if (ms >= toMs) return rows
      // A limit of the edit comes with this route.
      const route = subject !== 'untouched' && random.oneIn(5) ? 'POST /search' : 'GET /one'
      const [cost, method] = route === 'GET /one' ? [1, 'GET'] : [3, 'POST']
      const found = inForce.subjects.get(subject)
      if (found === undefined) throw new Error(subject)
      const limits = beforeLimitsOf(found, inForce.routes.find(({ template }) => template === route) ?? unmatchedRoute)
      const scope = buildScope({ subject, keyId: 'k', route, method })
      const request = buildLimitRequest({ scope, cost, limits })
      const boundaries = periodBoundaries('day', 'UTC', 1, ms)
      const [decision] = (await engine.decide({ requests: [request], nowMs: ms, boundaries })).outcomes
      const denied = isDecision(decision) && !decision.allowed ? decision.deniedBy : ''
      const outcome = denied === '' ? 'allow' : 'deny'
      rows.push({ subject, ms, key_id: 'k', route, method, cost, count: 1, outcome, denied_by: denied })
    }
    ms += random.integer(minuteMs, 3 * hourMs)
  }
}

async function insertRows(rows: readonly (Row & { readonly denied_by: string })[]): Promise<void> {
  const values = rows.map(({ ms, outcome, ...row }, seq) => ({
    v: 1,
    id: uuidv7(ms),
    ts: new Date(ms).toISOString().replace('T', ' ').replace('Z', ''),
    plan: 'any',
    ...row,
    outcome,
    reason: outcome === 'deny' ? 'limit' : 'ok',
    mode: 'enforce',
    charged: outcome === 'deny' ? 'no' : 'yes',
    limits: [],
    journal: '01a20287-6fb6-7000-8000-000000000001',
    seq,
  }))
  await clickhouse.insert({ table: 'weir.decisions', format: 'JSONEachRow', values })
}

test('The subjects with the most decisions are decided again with the counts that ran at the start, and the answer says their share', {
  timeout: 120_000,
}, async () => {
  const random = createSeededRandom()
  const nowMs = Date.now()
  // Not at the start of a day: its count runs by then.
  const fromMs = nowMs - (nowMs % quarterMs) - 31 * hourMs
  const subjects = ['minutes-1', 'minutes-2', 'smooth-1', 'flowing-1', 'mover', 'untouched']
  const histories = new Map<string, readonly Row[]>()
  for (const subject of subjects) {
    const rows = await drawHistory(random, subject, fromMs - (fromMs % (24 * hourMs)), nowMs - minuteMs)
    await insertRows(rows)
    histories.set(subject, rows)
  }
  const from = `from=${new Date(fromMs).toISOString()}`
  const all = await ask(`?${from}&top=100`)
  const seed = `WEIR_TEST_SEED=${random.seed}: ${JSON.stringify(all)}`
  expect([all.exact, all.subjects, all.share], seed).toEqual([true, subjects.length, 1])
  let changed = 0
  for (const [subject, rows] of histories) {
    const { refused, turned } = await sendAgain(rows, fromMs)
    const asked = rows.filter(({ ms }) => ms >= fromMs)
    const before = asked.filter(({ outcome }) => outcome === 'deny').length
    if (turned.to_refused + turned.to_admitted > 0) changed += 1
    for (const { limit, subjects: of } of all.limits) {
      const after = of.find((one) => one.subject === subject)?.after
      if (after !== undefined) expect([limit, after], seed).toEqual([limit, refused.get(`${subject} ${limit}`) ?? 0])
    }
    const one = await ask(`?${from}&subject=${subject}`)
    expect(one, seed).toMatchObject({
      exact: true,
      decisions: asked.length,
      ...turned,
      refused: { before, after: [...refused.values()].reduce((sum, count) => sum + count, 0) },
    })
  }
  expect(changed, seed).toBeGreaterThan(3)
  expect(JSON.stringify(all.limits), seed).not.toContain('untouched')

  const counts = Array.from(histories.values(), (rows) => rows.filter(({ ms }) => ms >= fromMs).length)
  const [most = 0, next = 0] = counts.toSorted((one, other) => other - one)
  const two = await ask(`?${from}&top=2`)
  expect([two.subjects, two.decisions], seed).toEqual([2, most + next])
  expect(two.share, seed).toBeCloseTo((most + next) / counts.reduce((sum, count) => sum + count, 0))
  const file = join(weir.dir, 'edited.yaml')
  await writeFile(file, edited)
  const args = ['diff', '--policy', file, '--data', weir.dir, '--impact', '--from', new Date(fromMs).toISOString()]
  const shown = await runWeir([...args, '--top', '100'])
  expect(shown).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/Exact: [\d,]+ decisions of 6 subjects, 100\.0% of all/),
  })
  expect(shown.stdout).toMatch(/^LIMIT +EDIT +REFUSED +WOULD BE +WHO$/m)
  expect(shown.stdout).toMatch(/^minute +changed +[\d,]+ +[\d,]+ +[a-z]+(-\d)? [\d,]+ → [\d,]+/m)
  const printed = await runWeir([...args, '--subject', 'minutes-1', '--json'])
  expect(JSON.parse(printed.stdout).impact).toMatchObject({ exact: true, subjects: 1 })
  const both = await runWeir([...args, '--subject', 'minutes-1', '--top', '2'])
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('subject and top exclude each other')])
})

test('The answer names how many subjects were decided again where all have more than a million records', {
  timeout: 120_000,
}, async () => {
  const ms = Date.now() - (Date.now() % quarterMs) - 5 * 24 * hourMs
  const row = { ms, key_id: 'k', route: 'GET /one', method: 'GET', cost: 1, count: 1, outcome: 'allow', denied_by: '' }
  for (const [subject, count] of [
    ['large', 600_000],
    ['medium', 450_000],
    ['huge', 1_000_001],
  ] as const) {
    if (subject === 'huge') {
      const span = `from=${new Date(ms).toISOString()}&to=${new Date(ms + quarterMs).toISOString()}`
      const impact = await ask(`?${span}`)
      expect(impact).toMatchObject({ exact: true, subjects: 1, decisions: 600_000, share: 600_000 / 1_050_000 })
      expect(impact.assumptions).toContainEqual(
        expect.stringMatching(/^2 subjects are affected, but only the first 1 are replayed: /),
      )
    }
    await insertRows([{ subject, ...row }])
    await clickhouse.command({
      query: `INSERT INTO weir.decisions SELECT d.* REPLACE (generateUUIDv4(number) AS id, number AS seq)
        FROM weir.decisions AS d CROSS JOIN numbers(1, {count:UInt32}) AS n WHERE d.subject = {subject:String}`,
      query_params: { subject, count: count - 1 },
    })
  }
  const response = await askFor('?subject=huge')
  expect([response.status, await response.json()]).toMatchObject([422, { type: 'urn:weir:problem:question-too-large' }])
})
