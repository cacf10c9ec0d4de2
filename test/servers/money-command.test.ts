import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { startFakeSupplier } from '../support/fake-supplier.ts'
import { folderForFile, forFile } from '../support/opened.ts'
import { until } from '../support/until.ts'
import { runWeir, weirUp } from '../support/weir-up.ts'

const supplier = await forFile(startFakeSupplier())
const from = '2026-01-01T00:00:00Z'
const policy = {
  version: 1,
  rateCards: {
    usd: {
      currency: 'USD',
      per: 1_000_000,
      unknown: 'refuse',
      prices: [
        { model: 'm', from, prices: { input_tokens: '3', cache_read_input_tokens: '0.3', output_tokens: '15' } },
        { model: 'm@flex', from, prices: { input_tokens: '1.5', output_tokens: '7.5' } },
      ],
    },
  },
  limits: { usd: { algorithm: 'fixed_window', period: 'month', unit: 'usd', size: '20.00' } },
  plans: { paid: { limits: ['usd'] } },
  upstreams: { supplier: { url: supplier.url, hosts: ['*'] } },
  routes: [{ match: 'POST /v1/chat/completions', meter: 'openai' }],
  subjects: { acme: { plan: 'paid', keys: [{ sha256: sha256('acme') }] } },
}
const file = join(await folderForFile('money'), 'weir.yaml')
await writeFile(file, JSON.stringify(policy))
const weir = await forFile(weirUp(['--policy', file]))
const environment = { WEIR_CONSOLE_URL: weir.line.console, WEIR_ADMIN_TOKEN: weir.line.adminToken }

test('weir why shows the lines of a price, and weir usage sums money as money', async () => {
  const answer = await fetch(`${weir.line.ingress}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-api-key': 'acme', 'x-output': '40', 'x-tier': 'flex' },
    body: JSON.stringify({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] }),
  })
  await answer.text()
  const id = answer.headers.get('weir-decision') ?? ''
  const { input_tokens: input = 0, output_tokens: output = 0 } = supplier.bills.get(id) ?? {}
  const nanos = input * 1_500 + output * 7_500
  const priced = async () => (await runWeir(['why', id], environment)).stdout
  await until(async () => (await priced()).includes('m@flex'))
  const rows = (await priced()).split('\n').map((line) => line.trim().split(/ {2,}/))
  expect(rows).toContainEqual(['output_tokens', '40', '0.0000075', '0.0003 USD', 'm@flex', expect.any(String)])
  expect(rows).toContainEqual(['PRICED', 'QUANTITY', 'PRICE', 'AMOUNT', 'ENTRY', 'SINCE'])
  const usage = async () => (await runWeir(['usage', '--unit', 'usd', '--by', 'subject'], environment)).stdout
  await until(async () => (await usage()).includes(`0.${String(nanos).padStart(9, '0').replace(/0+$/, '')} USD`))
})
