import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { type Booked, nanosOf, rateCards, readBooks } from '../support/failure/billed-books.ts'
import { type Fault, type Struck, strikeUntil } from '../support/failure/faults.ts'
import { weirAudit } from '../support/failure/hand-damage.ts'
import { settleHeld } from '../support/failure/settle-held.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { untilSettled } from '../support/failure/until-settled.ts'
import { startFakeSupplier } from '../support/fake-supplier.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'
import { until } from '../support/until.ts'

const minutes = Number(process.env.WEIR_TEST_MINUTES ?? '1')
const names = Array.from({ length: 12 }, (_, at) => `bill-${at}`)
const workers = 40
const sizes = { many: 1_000_000_000, few: 200_000 * minutes }
const planOf = (at: number) => (at % 2 === 0 ? 'many' : 'few')

/** Whom each is below, the nearest first: a team, a division and a company. */
const parentsOf = (at: number): readonly string[] => [`team-${at % 4}`, `division-${at % 2}`, 'company']
/** Dollars a month at each level, so that each of them is met. */
const caps = { team: 5 * minutes, division: 9 * minutes, company: 17 * minutes }
type Level = keyof typeof caps
const levelOf = (id: string) => id.replace(/-\d+$/, '') as Level
const above = [...new Set(names.flatMap((_, at) => parentsOf(at)))]

interface Play {
  /** What all meters have. */
  readonly meter: { readonly unsaid?: 'hold'; readonly drain: boolean }
  /** Processes; with one, all connections are its. */
  readonly ingress?: number
  /** Does whatever the exchanges must survive, until then. Returns what it did. */
  strike(struck: Struck, endMs: number, random: SeededRandom): Promise<readonly string[]>
}

const policyFor = (url: string, meter: Play['meter']) => {
  const tokens = { algorithm: 'fixed_window', period: 'month', unit: 'tokens', onUnavailable: 'deny' }
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
  return JSON.stringify({
    version: 1,
    rateCards,
    plans: {
      many: { limits: ['many'] },
      few: { limits: ['few'] },
      ...Object.fromEntries(Object.keys(caps).map((level) => [level, { limits: [`${level}-usd`] }])),
    },
    limits: {
      many: { ...tokens, size: sizes.many },
      few: { ...tokens, size: sizes.few },
      ...Object.fromEntries(
        Object.entries(caps).map(([level, size]) => [
          `${level}-usd`,
          { ...tokens, unit: 'usd', size: size.toFixed(2) },
        ]),
      ),
    },
    meters: {
      chat: { preset: 'openai', includeUsage: meter.drain, ...meter },
      messages: { preset: 'anthropic', ...meter, drain: true },
    },
    upstreams: { supplier: { url, hosts: ['*'], timeout: '1m' } },
    routes: [
      { match: 'POST /v1/chat/completions', meter: 'chat' },
      { match: 'POST /v1/messages', meter: 'messages' },
    ],
    subjects: {
      company: { plan: 'company' },
      'division-0': { plan: 'division', parent: 'company' },
      'division-1': { plan: 'division', parent: 'company' },
      ...Object.fromEntries([0, 1, 2, 3].map((at) => [`team-${at}`, { plan: 'team', parent: `division-${at % 2}` }])),
      ...Object.fromEntries(
        names.map((name, at) => [
          name,
          { plan: planOf(at), parent: `team-${at % 4}`, keys: [{ sha256: sha256(name) }] },
        ]),
      ),
    },
  })
}

const answered = { passed: 0, refused: 0, unavailable: 0, left: 0, broken: 0 }

/** One exchange of any kind; some clients hang up before its end. */
async function exchange(door: string, random: SeededRandom): Promise<void> {
  const leaving = new AbortController()
  const isStream = random.oneIn(2)
  const hasUsage = !random.oneIn(4)
  const most = random.integer(1, 60)
  const body = {
    model: random.pick(['large', 'small']),
    max_tokens: most,
    messages: [{ role: 'user', content: 'word '.repeat(random.integer(1, 200)) }],
    ...(isStream && { stream: true, ...(hasUsage && { stream_options: { include_usage: true } }) }),
  }
  const headers = {
    'x-api-key': names[random.integer(0, names.length - 1)] ?? '',
    'content-type': 'application/json',
    'x-output': `${random.integer(0, most)}`,
    ...(random.oneIn(20) && { 'x-fail': '503' }),
  }
  const path = random.pick(['/v1/chat/completions', '/v1/messages'])
  const init = { method: 'POST', headers, body: JSON.stringify(body), signal: leaving.signal }
  try {
    const answer = await fetch(`${door}${path}`, init)
    if (random.oneIn(10)) {
      answered.left += 1
      leaving.abort()
    } else await answer.arrayBuffer()
    if (answer.status === 200) answered.passed += 1
    else if (answer.status === 429) answered.refused += 1
    else answered.unavailable += 1
  } catch {
    answered.broken += 1
  }
}

async function playAndCompare({ meter, ingress = 2, strike }: Play): Promise<void> {
  const random = createSeededRandom()
  const supplier = await startFakeSupplier()
  const stack = await startStack({ policy: policyFor(supplier.url, meter), ingress, oneOfEach: true })
  try {
    await untilRestored(stack)
    const door = `http://127.0.0.1:${stack.ports.ingress}`
    const endMs = performance.now() + minutes * 60_000
    let isStriking = true
    const work = async () => {
      while (isStriking || performance.now() < endMs) await exchange(door, random)
    }
    const strikes = strike({ stack, upstream: supplier, cluster: undefined }, endMs, random)
    const [struck] = await Promise.all([
      strikes.finally(() => {
        isStriking = false
      }),
      ...Array.from({ length: workers }, work),
    ])
    await untilSettled(stack)
    const tell = (text: string) => process.stdout.write(`  seed ${random.seed}: ${text}\n`)
    tell(`struck: ${struck.join(' ')}`)
    tell(JSON.stringify(answered))
    const booked = new Map<string, Booked[]>()
    for (const row of await readBooks(stack)) booked.set(row.id, [...(booked.get(row.id) ?? []), row])
    const count = { reported: 0, bound: 0, held: 0 }
    const billed = new Map<string, number>()
    const spent = new Map<string, number>()
    const wrong: string[] = []
    for (const [id, bill] of supplier.bills) {
      const [row, ...more] = booked.get(id) ?? []
      const tokens = bill.input_tokens + bill.output_tokens
      if (row === undefined || more.length > 0 || Number(row.settlements) > 1) {
        wrong.push(`${id}: ${more.length + (row === undefined ? 0 : 1)} decisions, ${row?.settlements} settlements`)
        continue
      }
      billed.set(row.subject, (billed.get(row.subject) ?? 0) + tokens)
      const nanos = nanosOf(row.model, { ...bill })
      for (const one of parentsOf(names.indexOf(row.subject))) spent.set(one, (spent.get(one) ?? 0) + nanos)
      if (row.settlements === '0') count.held += 1
      else if (row.basis === 'reported') count.reported += 1
      else count.bound += 1
      const isEqual =
        Number(row.input) === bill.input_tokens &&
        Number(row.output) === bill.output_tokens &&
        Number(row.usd) === nanos
      const isKept =
        row.settlements === '0' || (row.basis === 'bound' && row.tokens === row.held && row.usd === row.heldUsd)
      if (tokens > Number(row.held) || nanos > Number(row.heldUsd) || (row.basis === 'reported' ? !isEqual : !isKept))
        wrong.push(`${id}: billed ${tokens}, ${JSON.stringify(row)}`)
    }
    tell(`${supplier.bills.size} bills: ${JSON.stringify(count)}`)
    expect(wrong).toEqual([])
    // What was held and never settled stays charged: nobody gets more than there is, whatever was killed.
    const over = names.filter((name, at) => (billed.get(name) ?? 0) > sizes[planOf(at)])
    over.push(...above.filter((one) => (spent.get(one) ?? 0) > caps[levelOf(one)] * 1e9))
    for (const [level, cap] of Object.entries(caps)) {
      const dollars = above.filter((one) => levelOf(one) === level).map((one) => (spent.get(one) ?? 0) / 1e9)
      tell(`at most ${Math.max(...dollars)} of ${cap} dollars billed to a ${level}`)
    }
    const most = Math.max(...names.map((name, at) => (planOf(at) === 'few' ? (billed.get(name) ?? 0) : 0)))
    tell(`at most ${most} of ${sizes.few} tokens billed`)
    expect([over, count.reported > 0, answered.refused > 0]).toEqual([[], true, true])
    if (struck.every((what) => !mayLeaveHeld.has(what))) expect(count.held).toBe(0)
    if (struck.length === 0) expect(count).toEqual({ reported: supplier.bills.size, bound: 0, held: 0 })
    const held = [...booked.values()].flat().filter(({ settlements }) => settlements === '0')
    for (const { id, subject, model } of held) {
      const { input_tokens = 0, output_tokens = 0 } = supplier.bills.get(id) ?? {}
      const usd = nanosOf(model, { input_tokens, output_tokens })
      const units = { input_tokens, output_tokens, tokens: input_tokens + output_tokens, usd }
      await settleHeld(stack, { subject, id }, units)
    }
    await untilSettled(stack)
    expect((await readBooks(stack)).filter(({ settlements }) => settlements !== '1')).toEqual([])
    expect((await weirAudit(stack)).findings).toEqual([])
  } finally {
    await stack.close()
    await supplier.close()
  }
}

const byFaults =
  (faults: readonly [Fault, ...Fault[]]): Play['strike'] =>
  async (struck, endMs, random) =>
    (await strikeUntil(endMs, struck, faults, random)).map(({ what }) => what)

/** An ingress that dies right after each effect of an exchange, at the twentieth that passes it. */
const effects = ['journal_due', 'journal_written', 'settle.corrected', 'settle.written', 'settle.recorded']
const atEachEffect: Play['strike'] = async ({ stack }) => {
  const deaths = () => stack.said.filter((line) => line.includes(' ingress ended (SIGKILL)')).length
  for (const effect of effects) {
    const before = deaths()
    stack.killInto('ingress', [{ WEIR_CRASH_AT: `ingress.${effect}:20` }])
    await until(() => deaths() >= before + 2)
    await stack.backAfter('ingress', undefined)
  }
  return effects
}
const mayLeaveHeld = new Set(['kill', 'redis', ...effects])

it.each<readonly [string, Play]>([
  [
    'whatever is killed, stopped or breaks off',
    {
      meter: { unsaid: 'hold', drain: false },
      strike: byFaults(['kill', 'stop', 'redis', 'kafka', 'clickhouse', 'upstream', 'none']),
    },
  ],
  [
    'after which effect of it ever an ingress dies',
    { meter: { unsaid: 'hold', drain: false }, ingress: 1, strike: atEachEffect },
  ],
  [
    'where answers are read to their ends and asked for their usage, all reported',
    { meter: { drain: true }, strike: async () => [] },
  ],
])(
  '%s: each exchange that the supplier bills is in the books once, with what it billed or at most what it held, and nobody is billed more than there is',
  (_, play) => playAndCompare(play),
  3_600_000,
)
