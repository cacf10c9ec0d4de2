import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connectClickhouse, readRows } from '@weir/clickhouse/connect.ts'
import { expect, it } from 'vitest'
import { type Billed, type SpendCard, type SpendEntry, spendOf } from '../support/failure/rational-spend.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { weirOn } from '../support/failure/stack-command.ts'
import { untilSettled } from '../support/failure/until-settled.ts'
import { listen } from '../support/listen.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { until } from '../support/until.ts'

/** At least so many; they go on until the edited card has been in force for a while. */
const exchanges = Number(process.env.WEIR_TEST_EXCHANGES ?? '100000')
const workers = 64
const random = createSeededRandom()

/** Half of them as Anthropic's API has them, half as OpenAI's. */
const models = Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? `claude-${at}-5` : `gpt-${at}`))
const tiers = ['flex', 'priority'] as const

/** Up to a thousandth of a billionth of a dollar a token: many sums are no whole billionth. */
const price = () => `${random.integer(0, 20)}.${String(random.integer(0, 999_999)).padStart(6, '0')}`

function entryOf(model: string, fromMs: number): SpendEntry {
  const isAnthropic = model.startsWith('claude')
  const parts = isAnthropic
    ? ['cache_read_input_tokens', 'cache_creation_input_tokens', 'cache_creation_1h_input_tokens']
    : ['cache_read_input_tokens', 'reasoning_output_tokens']
  const named = ['input_tokens', 'output_tokens', ...parts.filter(() => !random.oneIn(3))]
  const prices = () => Object.fromEntries(named.filter(() => !random.oneIn(8)).map((unit) => [unit, price()]))
  const above = { input_tokens: 200_000, prices: { input_tokens: price(), ...prices() } }
  const base = { model, from: new Date(fromMs).toISOString(), prices: { input_tokens: price(), ...prices() } }
  return random.oneIn(2) ? { ...base, above } : base
}

/** Each model has a price by a pattern, half by name, some by tier; half change while exchanges are made. */
function cardOf(startMs: number): SpendCard {
  const prices = models.flatMap((model) => {
    const patterns = [`${model}*`, ...(random.oneIn(2) ? [model] : []), ...(random.oneIn(3) ? [`${model}@flex`] : [])]
    return patterns.flatMap((pattern) => [
      entryOf(pattern, startMs - 86_400_000),
      ...(random.oneIn(2) ? [entryOf(pattern, startMs + random.integer(20, 90) * 1_000)] : []),
    ])
  })
  return { per: 1_000_000, prices }
}

const sha256 = createHash('sha256').update('spend').digest('hex')

const policyOf = (url: string, card: SpendCard) =>
  JSON.stringify({
    version: 1,
    rateCards: { usd: { currency: 'USD', unknown: 'refuse', ...card } },
    limits: { seen: { algorithm: 'fixed_window', period: 'month', unit: 'usd', size: '9000000', mode: 'shadow' } },
    plans: { team: { limits: ['seen'] } },
    upstreams: { supplier: { url, hosts: ['*'], timeout: '1m' } },
    routes: [
      { match: 'POST /v1/chat/completions', meter: 'openai' },
      { match: 'POST /v1/messages', meter: 'anthropic' },
    ],
    subjects: { red: { plan: 'team', keys: [{ sha256 }] } },
  })

function someBill(): Billed {
  const asked = random.pick(models as [string, ...string[]])
  const [input, output] = [random.integer(0, random.oneIn(3) ? 400_000 : 4_000), random.integer(0, 3_000)]
  const [read, isAnthropic] = [random.integer(0, input), asked.startsWith('claude')]
  const made = isAnthropic ? random.integer(0, input - read) : 0
  return {
    asked,
    model: random.oneIn(3) ? `${asked}-2026-09-01` : asked,
    tier: random.oneIn(3) ? random.pick(tiers) : undefined,
    input,
    read,
    made,
    output,
    hour: isAnthropic && random.oneIn(2) ? random.integer(0, made) : 0,
    reasoning: isAnthropic ? 0 : random.integer(0, output),
  }
}

/** As the two APIs write what they bill. */
function answerOf({ model, tier, input, read, made, hour, output, reasoning }: Billed, isStream: boolean): string {
  const event = (type: string, rest: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
  if (model.startsWith('gpt')) {
    const usage = {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: read },
      completion_tokens_details: { reasoning_tokens: reasoning },
    }
    const whole = { id: 'c', model, service_tier: tier, choices: [], usage }
    return isStream ? `data: ${JSON.stringify(whole)}\n\ndata: [DONE]\n\n` : JSON.stringify(whole)
  }
  const usage = {
    input_tokens: input - read - made,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: made,
    cache_creation: { ephemeral_1h_input_tokens: hour, ephemeral_5m_input_tokens: made - hour },
    service_tier: tier,
  }
  if (!isStream) return JSON.stringify({ id: 'm', type: 'message', model, usage: { ...usage, output_tokens: output } })
  const start = event('message_start', { message: { id: 'm', model, usage: { ...usage, output_tokens: 0 } } })
  return start + event('message_delta', { usage: { output_tokens: output } }) + event('message_stop', {})
}

/** A supplier that bills at random, and writes it down by the decision. */
async function startBiller() {
  const bills = new Map<string, Billed>()
  const server = createServer(async (request, response) => {
    const { stream } = JSON.parse(await text(request)) as { readonly stream: boolean }
    const bill = JSON.parse(String(request.headers['x-bill'])) as Billed
    bills.set(String(request.headers['weir-decision']), bill)
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' })
    response.end(answerOf(bill, stream))
  })
  const port = await listen(server)
  return { bills, url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

async function ask(door: string): Promise<void> {
  const bill = someBill()
  const path = bill.asked.startsWith('gpt') ? '/v1/chat/completions' : '/v1/messages'
  const body = JSON.stringify({ model: bill.asked, max_tokens: 3_000, messages: [], stream: random.oneIn(2) })
  const headers = { 'x-api-key': 'spend', 'content-type': 'application/json', 'x-bill': JSON.stringify(bill) }
  const answer = await fetch(`${door}${path}`, { method: 'POST', headers, body })
  const said = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status}: ${said}`)
}

async function readSpend({ addresses }: Stack) {
  const clickhouse = connectClickhouse(addresses.clickhouse, 'failure-suite', 60_000)
  try {
    const rows = await readRows<{ readonly id: string; readonly ms: string; readonly usd: string }>(
      clickhouse,
      `SELECT toString(d.id) AS id, toString(toUnixTimestamp64Milli(d.ts)) AS ms, toString(c.units['usd']) AS usd
        FROM weir.decisions AS d INNER JOIN weir.decisions AS c ON c.corrects = d.id WHERE d.count > 0 AND c.count = 0`,
    )
    const [sum] = await readRows<{ readonly sum: string }>(
      clickhouse,
      `SELECT toString(sum(quantity)) AS sum FROM weir.units_15m WHERE unit = 'usd'`,
    )
    return { rows, sum: BigInt(sum?.sum ?? 0) }
  } finally {
    await clickhouse.close()
  }
}

it('what is spent in ClickHouse is the sum of units × price to the billionth, by a program that shares no code with Weir', async () => {
  const supplier = await startBiller()
  const card = cardOf(Date.now())
  const stack = await startStack({ policy: policyOf(supplier.url, card), ingress: 2, oneOfEach: true })
  try {
    const door = `http://127.0.0.1:${stack.ports.ingress}`
    let [asked, endMs] = [0, Number.POSITIVE_INFINITY]
    const work = async () => {
      while (asked < exchanges || Date.now() < endMs) {
        asked += 1
        await ask(door)
      }
    }
    // An edited card, half way: new entries for half of the models, in force some seconds later.
    const edited = { ...card, prices: [...card.prices] }
    const edit = async () => {
      await until(() => asked >= exchanges / 2, 600_000)
      const fromMs = Math.ceil(Date.now() / 1_000 + 15) * 1_000
      for (const model of models.filter(() => random.oneIn(2))) edited.prices.push(entryOf(`${model}*`, fromMs))
      const file = join(stack.dir, 'edited.json')
      writeFileSync(file, policyOf(supplier.url, edited))
      await weirOn(stack, 'apply', '--policy', file)
      expect(Date.now()).toBeLessThan(fromMs)
      endMs = fromMs + 5_000
    }
    await Promise.all([edit(), ...Array.from({ length: workers }, work)])
    await untilSettled(stack)
    const { rows, sum } = await readSpend(stack)
    expect([rows.length, supplier.bills.size]).toEqual([asked, asked])
    let [expected, dearer] = [0n, 0]
    const wrong: string[] = []
    for (const { id, ms, usd } of rows) {
      const bill = supplier.bills.get(id)
      const spent = bill && spendOf(edited, bill, Number(ms))
      expected += spent ?? 0n
      dearer += Number(spent !== (bill && spendOf(card, bill, Number(ms))))
      if (spent !== BigInt(usd)) wrong.push(`${id}: ${spent} but ${usd}: ${JSON.stringify(bill)}`)
    }
    process.stdout.write(
      `  seed ${random.seed}: ${rows.length} exchanges of ${models.length} models by ${edited.prices.length} entries: ${expected} billionths by the program, ${sum} in ClickHouse\n`,
    )
    expect([wrong.slice(0, 5), wrong.length, sum]).toEqual([[], 0, expected])
    // The edited card was in force before the last of them.
    expect(dearer).toBeGreaterThan(0)
  } finally {
    await stack.close()
    supplier.close()
  }
}, 3_600_000)
