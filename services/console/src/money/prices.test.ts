import { describe, expect, it } from 'vitest'
import { openConsole, smallPolicy } from '../testing/open-console.ts'

const api = {
  currency: 'EUR',
  flat: '49.00',
  lines: [
    {
      name: 'search',
      routes: ['POST /v1/search'],
      measure: 'units',
      included: 100_000,
      mode: 'graduated',
      tiers: [
        { up_to: 1_000_000, unit_amount: '0.0008' },
        { unit_amount: '0.0005', flat_amount: '10.00' },
      ],
    },
  ],
}

async function withPrices() {
  const opened = openConsole()
  await opened.applyFile(`${smallPolicy}  payer: { sha256: ${'c'.repeat(64)}, scopes: [billing] }\n`)
  expect((await opened.ask('PUT /v1/prices/api', { body: api })).statusCode).toBe(201)
  return opened
}

describe('POST /v1/prices/{name}/quote', () => {
  it('prices usage step by step, in whole numbers that are exact beyond 2^53', async () => {
    const { ask } = await withPrices()
    const most = Number.MAX_SAFE_INTEGER
    const usage = [
      { route: 'POST /v1/search', units: most, decisions: 1 },
      { route: 'POST /v1/search', units: most },
      { route: 'GET /v1/other', units: 7, decisions: 3 },
      { decisions: 2 },
    ]
    const answer = await ask('POST /v1/prices/api/quote', { body: { usage } })
    expect(answer.statusCode).toBe(200)
    // As text: numbers beyond 2^53 would lose digits in JSON.parse.
    expect(answer.body).toContain('"quantity":18014398509481982,"included":100000,"billable":18014398509381982')
    expect(answer.json()).toMatchObject({
      prices: 'api',
      currency: 'EUR',
      flat: '49.00',
      minimum: '0.00',
      minimum_added: '0.00',
      total: '9007199255049.99',
      unpriced: { units: 7, decisions: 5 },
      lines: [
        {
          tiers: [
            { up_to: 1_000_000, quantity: 1_000_000, unit_amount: '0.0008', flat_amount: '0', amount: '800' },
            { unit_amount: '0.0005', flat_amount: '10', amount: '9007199254200.991' },
          ],
          exact: '9007199255000.991',
          amount: '9007199255000.99',
        },
      ],
    })
  })

  it.each([
    [{ usage: [{ units: -1 }] }, 400],
    [{ usage: [{ units: 1.5 }] }, 400],
    [{ usage: [{ units: 2 ** 53 }] }, 400],
    [{ usage: [{ cost: 1 }] }, 400],
    [{}, 400],
  ])('refuses %j', async (body, status) => {
    const { ask } = await withPrices()
    expect((await ask('POST /v1/prices/api/quote', { body })).statusCode).toBe(status)
  })

  it('of an unknown price list is 404, and says which one may be meant', async () => {
    const { ask } = await withPrices()
    const answer = await ask('POST /v1/prices/ap/quote', { body: { usage: [] } })
    expect([answer.statusCode, answer.json().detail]).toEqual([404, expect.stringContaining('did you mean api?')])
  })
})

describe('price lists as parts of the policy', () => {
  it('are read, replaced and deleted by themselves, and a dry run of a file shows their change', async () => {
    const { ask } = await withPrices()
    expect((await ask('/v1/prices/api')).json()).toEqual(api)
    const { body: file } = await ask('/v1/policy', { headers: { accept: 'application/yaml' } })
    const dearer = file.replace('0.0008', '0.0009')
    expect(dearer).not.toBe(file)
    const shown = await ask('PUT /v1/policy?dry_run=true', { body: dearer })
    expect(shown.json().changes).toContainEqual(expect.objectContaining({ kind: 'price', name: 'api' }))
    expect((await ask('PUT /v1/prices/api', { body: { ...api, flat: '0.001' } })).json().problems).toEqual([
      { path: 'prices.api.flat', message: 'must have at most 2 decimal places, like the currency, but is 0.001' },
    ])
    expect((await ask('DELETE /v1/prices/api')).statusCode).toBe(204)
    expect((await ask('/v1/prices/api')).statusCode).toBe(404)
  })
})
