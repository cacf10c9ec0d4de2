import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { startFakeSupplier } from '../../support/fake-supplier.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'

const supplier = await forFile(startFakeSupplier())
const [size, waveOf, output] = [8_000, 30, 900]
/** Of `hold`, with the units that a request holds by it at most. */
const holds = { bound: Number.POSITIVE_INFINITY, '40': 40, none: 1 }
type Hold = keyof typeof holds
const names = Object.keys(holds) as Hold[]

const limitOf = (hold: Hold) => ({
  algorithm: 'fixed_window',
  size,
  period: 'month',
  unit: 'tokens',
  hold: hold === '40' ? 40 : hold,
})
const policy = {
  version: 1,
  limits: Object.fromEntries(names.map((hold) => [`by-${hold}`, limitOf(hold)])),
  plans: Object.fromEntries(names.map((hold) => [hold, { limits: [`by-${hold}`] }])),
  upstreams: { supplier: { url: supplier.url, hosts: ['*'] } },
  routes: [{ match: 'POST /v1/chat/completions', meter: 'openai' }],
  subjects: Object.fromEntries(names.map((hold) => [hold, { plan: hold, keys: [{ sha256: sha256(hold) }] }])),
}
const { ingress } = await forFile(startIngressStack(policy))

/** Requests that are all open at a time. What those that were admitted are billed, each; and whether more may pass. */
async function wave(hold: Hold) {
  const body = {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 1_000,
    messages: [{ role: 'user', content: 'hello' }],
  }
  const headers = { 'x-api-key': hold, 'content-type': 'application/json', 'x-output': `${output}`, 'x-pause': '2' }
  const ask = () =>
    fetch(`${ingress.proxy}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) })
  const answers = await Promise.all(Array.from({ length: waveOf }, ask))
  const admitted = answers.filter(({ status }) => status === 200)
  await until(() => supplier.paused.size === admitted.length)
  for (const resume of supplier.paused) resume()
  supplier.paused.clear()
  await Promise.all(answers.map((answer) => answer.text()))
  const billed = admitted.map((answer) => {
    const bill = supplier.bills.get(answer.headers.get('weir-decision') ?? '')
    return (bill?.input_tokens ?? 0) + (bill?.output_tokens ?? 0)
  })
  // What only holds refuse is worth a retry.
  const mayPass = answers.some(({ headers }) => Number(headers.get('retry-after') ?? 0) <= 2)
  return { billed, mayPass }
}

const settled = async () => {
  const text = await (await fetch(`${ingress.ops}/metrics`)).text()
  const counts = [...text.matchAll(/^weir_metered_exchanges_total\{[^}]*\} (\d+)$/gm)]
  return counts.reduce((sum, [, n]) => sum + Number(n), 0)
}

test.each(names)('With hold %s settled requests exceed the size by no more than docs/holds.md says', async (hold) => {
  const before = await settled()
  let [total, open, each, admitted] = [0, 0, 0, 0]
  for (let mayPass = true; mayPass; ) {
    const found = await wave(hold)
    const { billed } = found
    mayPass = found.mayPass
    if (billed.length === 0) continue
    admitted += billed.length
    open = billed.length
    each = Math.max(...billed)
    total += billed.reduce((sum, n) => sum + n, 0)
    await until(async () => (await settled()) === before + admitted)
  }
  const beyond = Math.max(0, total - size)
  const most = open * Math.max(0, each - holds[hold])
  process.stdout.write(`  hold ${hold}: ${total} of ${size} tokens billed, ${beyond} beyond, of at most ${most}\n`)
  expect(beyond).toBeLessThanOrEqual(most)
  // Held for less than they use, more of them pass at a time, and reach the size.
  expect(total > size).toBe(hold !== 'bound')
})
