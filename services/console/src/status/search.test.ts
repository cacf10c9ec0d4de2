import { expect, it } from 'vitest'
import { knownAlert, knownChange, knownDecision, openWithPolicy } from '../testing/open-console.ts'

async function searched(name: string, overrides: Parameters<typeof openWithPolicy>[0] = {}, token?: string) {
  const { ask } = await openWithPolicy(overrides)
  return await ask(`/v1/search?q=${encodeURIComponent(name)}`, token === undefined ? {} : { token })
}
const kindsOf = async (...asked: Parameters<typeof searched>) =>
  (await searched(...asked)).json().items.map(({ kind }: { readonly kind: string }) => kind)

it.each([
  ['acme', ['subject']],
  ['acme-1', ['key']],
  ['ops', ['endpoint']],
  ['minute', ['limit']],
  ['POST /v1/search', ['route']],
  [knownDecision.toUpperCase(), ['decision']],
  [knownAlert, ['alert']],
  [knownChange, ['change']],
  ['acm', []],
  ['01a20287-6fb6-7000-8000-0000000000ff', []],
])('the whole name or id %s is that of %j', async (name, kinds) => {
  expect(await kindsOf(name)).toEqual(kinds)
})

it('a subject and a key that the policy does not have are found by what they asked', async () => {
  const asked: object[] = []
  const askUsageTotals = async (_: unknown, { only }: { readonly only: object }) => {
    asked.push(only)
    return { count: '3', allowed: '3', denied: '0', cost: '3' }
  }
  expect(await kindsOf('ip:192.0.2.7', { askUsageTotals })).toEqual(['subject', 'key'])
  expect(asked).toEqual([{ subject: ['ip:192.0.2.7'] }, { key_id: ['ip:192.0.2.7'] }])
})

it('what the token may not read is not found', async () => {
  expect(await kindsOf(knownDecision, {}, 'reader-token')).toEqual([])
  expect(await kindsOf(knownAlert, {}, 'reader-token')).toEqual(['alert'])
})

it('a search that ClickHouse does not answer finds nothing wrong: it is unavailable', async () => {
  const askUsageTotals = () => Promise.reject(new Error('password in here'))
  const answer = await searched('acm', { askUsageTotals })
  expect([answer.statusCode, answer.body.includes('password')]).toEqual([503, false])
})
