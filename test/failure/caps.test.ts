import { createHash } from 'node:crypto'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { expect, it } from 'vitest'
import { after } from '../support/after.ts'
import { type Booked, nanosOf, rateCards, readBooks } from '../support/failure/billed-books.ts'
import { type Fault, strikeUntil } from '../support/failure/faults.ts'
import { weirAudit } from '../support/failure/hand-damage.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { untilRestored } from '../support/failure/until-restored.ts'
import { untilSettled } from '../support/failure/until-settled.ts'
import { startFakeSupplier } from '../support/fake-supplier.ts'
import { createSeededRandom, type SeededRandom } from '../support/seeded-random.ts'

const minutes = Number(process.env.WEIR_TEST_MINUTES ?? '1')
const [memberCount, teamCount, divisionCount, workers] = [200, 20, 4, 1_100]
const idsOf = (what: string, count: number) => Array.from({ length: count }, (_, at) => `${what}-${at}`)
const members = idsOf('member', memberCount)
/** Who counts a member's request, the nearest first. */
const countedOf = (at: number) => [
  `member-${at}`,
  `team-${at % teamCount}`,
  `division-${at % divisionCount}`,
  'company-0',
]

/** Dollars a month at each level: what a thousand streams hold, and a minute's use, so that each level is met. */
const caps = {
  member: 0.02 + 0.008 * minutes,
  team: 0.16 + 0.06 * minutes,
  division: 0.8 + 0.28 * minutes,
  company: 3 + 1.1 * minutes,
}
const tokensAMinute = 170_000
/** Streams that the supplier holds up at a time, while the caps let as many begin. */
const openAimed = 1_000
const levelOf = (id: string) => id.replace(/-\d+$/, '') as keyof typeof caps

/** What a limit of money and one of tokens hold, if not all that a request may use. */
type Holds = { readonly usd: string; readonly tokens: 'none' | number } | undefined

const policyFor = (url: string, holds: Holds) => {
  const common = { algorithm: 'fixed_window', onUnavailable: 'deny' }
  const plans = Object.keys(caps).map((level) => [
    level,
    { limits: [`${level}-usd`, ...(level === 'team' ? ['team-tokens'] : [])] },
  ])
  const limits = Object.entries(caps).map(([level, cap]) => [
    `${level}-usd`,
    { ...common, period: 'month', unit: 'usd', size: cap.toFixed(4), ...(holds && { hold: holds.usd }) },
  ])
  const tokens = { ...common, window: '1m', unit: 'tokens', size: tokensAMinute, ...(holds && { hold: holds.tokens }) }
  const below = (ids: readonly string[], plan: string, parentOf: (at: number) => string) =>
    ids.map((id, at) => [id, { plan, parent: parentOf(at) }] as const)
  const keys = (id: string) => [{ sha256: createHash('sha256').update(id).digest('hex') }]
  return JSON.stringify({
    version: 1,
    rateCards,
    plans: Object.fromEntries(plans),
    limits: { ...Object.fromEntries(limits), 'team-tokens': tokens },
    meters: { chat: { preset: 'openai', includeUsage: true, unsaid: 'hold' } },
    upstreams: { supplier: { url, hosts: ['*'], timeout: '1m', connections: workers } },
    routes: [{ match: 'POST /v1/chat/completions', meter: 'chat' }],
    subjects: {
      'company-0': { plan: 'company' },
      ...Object.fromEntries(below(idsOf('division', divisionCount), 'division', () => 'company-0')),
      ...Object.fromEntries(below(idsOf('team', teamCount), 'team', (at) => `division-${at % divisionCount}`)),
      ...Object.fromEntries(
        below(members, 'member', (at) => `team-${at % teamCount}`).map(([id, of]) => [id, { ...of, keys: keys(id) }]),
      ),
    },
  })
}

/** Requests that are open, and the most that were at a time, by who counts them. */
const [open, openMost] = [new Map<string, number>(), new Map<string, number>()]
function countOpen(member: string, by: 1 | -1): void {
  for (const one of countedOf(Number(member.slice('member-'.length)))) {
    const count = (open.get(one) ?? 0) + by
    open.set(one, count)
    openMost.set(one, Math.max(count, openMost.get(one) ?? 0))
  }
}

/** One stream, which the supplier holds up. Returns its status; 0 where it broke off. */
async function stream(door: string, random: SeededRandom): Promise<number> {
  const member = random.pick(members as [string, ...string[]])
  const most = random.integer(1, 60)
  const content = 'word '.repeat(random.integer(1, 200))
  const body = { model: random.pick(['large', 'small']), max_tokens: most, stream: true }
  const headers = {
    'x-api-key': member,
    'content-type': 'application/json',
    'x-output': `${random.integer(0, most)}`,
    'x-pause': '1',
  }
  const text = JSON.stringify({ ...body, messages: [{ role: 'user', content }] })
  countOpen(member, 1)
  try {
    const answer = await fetch(`${door}/v1/chat/completions`, { method: 'POST', headers, body: text })
    await answer.arrayBuffer()
    return answer.status
  } catch {
    return 0
  } finally {
    countOpen(member, -1)
  }
}

/** Refusals by limit, in the books. */
async function refusals({ addresses }: Stack): Promise<Readonly<Record<string, number>>> {
  const clickhouse = connectClickhouse(addresses.clickhouse, 'failure-suite', 60_000)
  const query = `SELECT denied_by AS name, toString(sum(count)) AS n FROM weir.decisions WHERE outcome = 'deny' GROUP BY name ORDER BY name`
  const rows = await readRows<{ readonly name: string; readonly n: string }>(clickhouse, query)
  await clickhouse.close()
  return Object.fromEntries(rows.map(({ name, n }) => [name, Number(n)]))
}

type Bills = Awaited<ReturnType<typeof startFakeSupplier>>['bills']

/** Adds up the supplier's log in its order. Returns what was billed of each cap, and what was beyond one. */
function compare(bills: Bills, books: readonly Booked[]) {
  const decided = new Map(books.map((row) => [row.id, row]))
  const billed = new Map<string, number>()
  const over = new Map<string, number>()
  const add = (count: string, amount: number, cap: number) => {
    const sum = (billed.get(count) ?? 0) + amount
    billed.set(count, sum)
    if (sum > cap) over.set(count, sum - cap)
  }
  for (const [id, bill] of bills) {
    const row = decided.get(id)
    if (row === undefined) throw new Error(`${id} was billed, and is not in the books`)
    const at = Number(row.subject.slice('member-'.length))
    const nanos = nanosOf(row.model, { ...bill })
    for (const one of countedOf(at)) add(one, nanos, Math.round(caps[levelOf(one)] * 1e9))
    const minute = Math.floor(Number(row.ms) / 60_000)
    add(`tokens of team-${at % teamCount} at ${minute}`, bill.input_tokens + bill.output_tokens, tokensAMinute)
  }
  return { billed, over }
}

const most = (sums: ReadonlyMap<string, number>, start: string) =>
  Math.max(0, ...[...sums].flatMap(([count, sum]) => (count.startsWith(start) ? [sum] : [])))

async function play(holds: Holds, faults: readonly [Fault, ...Fault[]] | undefined) {
  const random = createSeededRandom()
  const supplier = await startFakeSupplier()
  const stack = await startStack({ policy: policyFor(supplier.url, holds), ingress: 2, oneOfEach: true })
  try {
    await untilRestored(stack)
    const door = `http://127.0.0.1:${stack.ports.ingress}`
    const endMs = performance.now() + minutes * 60_000
    const statuses = new Map<number, number>()
    let [working, openMax] = [workers, 0]
    const work = async () => {
      while (performance.now() < endMs) {
        const status = await stream(door, random)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        // A caller that is refused does not ask again at once: it would keep the processors from those that stream.
        if (status !== 200) await after(500)
      }
      working -= 1
    }
    const letGo = async () => {
      while (working > 0) {
        openMax = Math.max(openMax, supplier.paused.size)
        const full = performance.now() < endMs ? openAimed : 0
        const going = [...supplier.paused].slice(0, Math.max(5, supplier.paused.size - full))
        for (const resume of going) {
          supplier.paused.delete(resume)
          resume()
        }
        await after(20)
      }
    }
    const struck = faults && strikeUntil(endMs, { stack, upstream: supplier, cluster: undefined }, faults, random)
    await Promise.all([struck, letGo(), ...Array.from({ length: workers }, work)])
    await untilSettled(stack)
    const books = await readBooks(stack)
    const { billed, over } = compare(supplier.bills, books)
    const tell = (text: string) => process.stdout.write(`  seed ${random.seed}: ${text}\n`)
    tell(
      `hold ${JSON.stringify(holds ?? 'bound')}, struck: ${(await struck)?.map(({ what }) => what).join(' ') ?? '-'}`,
    )
    tell(`answers ${JSON.stringify([...statuses])}, ${supplier.bills.size} billed, at most ${openMax} open at a time`)
    for (const [level, cap] of Object.entries(caps)) {
      const [sum, beyond] = [most(billed, level) / 1e9, most(over, level) / 1e9]
      tell(`${level}: at most ${sum.toFixed(6)} of ${cap} dollars, ${beyond.toFixed(6)} beyond`)
    }
    tell(`tokens a minute: at most ${most(billed, 'tokens')} of ${tokensAMinute}, ${most(over, 'tokens')} beyond`)
    const held = books.filter(({ settlements }) => settlements === '0')
    const heldNanos = held.reduce((sum, { heldUsd }) => sum + Number(heldUsd), 0)
    tell(`refused by ${JSON.stringify(await refusals(stack))}`)
    tell(`never settled: ${held.length} holds of ${(heldNanos / 1e9).toFixed(6)} dollars, of the company's cap`)
    expect([(statuses.get(429) ?? 0) > 0, openMax > workers / 2]).toEqual([true, true])
    expect((await weirAudit(stack)).findings).toEqual([])
    return over
  } finally {
    await stack.close()
    await supplier.close()
  }
}

it.each<readonly [string, readonly [Fault, ...Fault[]] | undefined]>([
  ['nothing is killed', undefined],
  ['ingress processes and Redis are killed', ['kill', 'redis', 'none']],
])(
  '1,000 streams by 200 members of 20 teams where %s: no cap at any level is passed',
  async (_, faults) => {
    const over = await play(undefined, faults)
    expect([...over]).toEqual([])
  },
  3_600_000,
)

/** What a request of at most 1,000 bytes of words and 60 tokens may cost and use. */
const boundOf = { nanos: 1_200 * 3_000 + 60 * 15_000, tokens: 1_200 + 60 }

it.each<readonly [string, NonNullable<Holds>, { readonly nanos: number; readonly tokens: number }]>([
  ['a quantity', { usd: '0.0002', tokens: 100 }, { nanos: 200_000, tokens: 100 }],
  ['nothing', { usd: 'none', tokens: 'none' }, { nanos: 0, tokens: 0 }],
])(
  'streams that hold %s pass a cap by no more than docs/holds.md says',
  async (_, holds, held) => {
    openMost.clear()
    const over = await play(holds, undefined)
    const mostOver = (count: string): number => {
      const [, team] = /^tokens of (\S+)/.exec(count) ?? []
      if (team !== undefined) return (openMost.get(team) ?? 0) * (boundOf.tokens - held.tokens)
      return (openMost.get(count) ?? 0) * (boundOf.nanos - held.nanos)
    }
    for (const count of new Set(['company-0', ...over.keys()])) {
      const [by, bound] = [over.get(count) ?? 0, mostOver(count)]
      process.stdout.write(`  ${count}: ${by} beyond, of at most ${bound}\n`)
      expect([count, by <= bound]).toEqual([count, true])
    }
    // Otherwise the bound would be said of what never happens.
    expect(over.size).toBeGreaterThan(0)
  },
  3_600_000,
)
