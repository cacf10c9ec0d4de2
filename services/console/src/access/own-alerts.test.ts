import { signAddress } from '@weir/policy/address-token.ts'
import { addressesOf, confirmHash, hashOf } from '@weir/policy/contact-targets.ts'
import { expect, it } from 'vitest'
import { nowMs, openConsole } from '../testing/open-console.ts'

const key = 'a key that is long enough to sign mails'
const path = '/v1/subjects/acme/own-alerts'
const hourMs = 3_600_000

async function open({ endpoint = true, allowed = true } = {}) {
  let now = nowMs
  const opened = openConsole({ unsubscribeKey: () => key, clock: { nowMs: () => now } })
  const { ask, applyFile } = opened
  await applyFile()
  if (endpoint) await ask('PUT /v1/endpoints/customers', { body: { type: 'subject' } })
  await ask('PUT /v1/subjects/acme', { body: { plan: 'free', ...(allowed ? { ownAlerts: true } : {}) } })
  const { token } = (
    await ask('POST /v1/tokens', { body: { name: 'own', scopes: ['usage'], subjects: ['acme'] } })
  ).json()
  const choose = (addresses: readonly string[], percents: readonly number[] = []) =>
    ask(`PUT ${path}`, { token, body: { addresses, percents } })
  const shown = async () => (await ask(path, { token })).json()
  const links = new Map<string, string>()
  const linkOf = (address: string, purpose: 'confirm' | 'unsubscribe' = 'confirm') => {
    const pending = opened.store.state.policy.ownAlerts.get('acme')?.pending.find(({ email }) => email === address)
    if (pending !== undefined) links.set(address, confirmHash(pending))
    const addressHash = purpose === 'confirm' ? (links.get(address) ?? '') : hashOf(address)
    return `/${purpose}/${signAddress([key], purpose, { subject: 'acme', addressHash })}`
  }
  const click = (address: string, purpose?: 'unsubscribe') =>
    opened.app.inject({ method: 'POST', url: linkOf(address, purpose) })
  return { ...opened, token, choose, shown, linkOf, click, pass: (ms: number) => (now += ms) }
}
const [one, two] = ['one@acme.example', 'two@acme.example']

it('an address that a customer adds is confirmed by its link, and unsubscribed by the one of its mails', async () => {
  const { choose, shown, click, linkOf, app, tested, store } = await open()
  expect((await choose([one], [90, 50])).json()).toEqual({
    allowed: true,
    addresses: [{ email: one, state: 'pending' }],
    percents: [50, 90],
  })
  expect(tested).toEqual([expect.stringMatching(/^customers\/confirm-[0-9a-f]{64} acme$/)])
  const published = store.published.length
  expect((await app.inject({ url: linkOf(one) })).body).toContain('<button>Confirm address</button>')
  expect(store.published).toHaveLength(published)
  expect((await click(one)).statusCode).toBe(200)
  expect((await shown()).addresses).toEqual([{ email: one, state: 'confirmed' }])
  expect((await click(one)).statusCode).toBe(404)
  expect((await click(one, 'unsubscribe')).statusCode).toBe(200)
  expect((await shown()).addresses).toEqual([{ email: one, state: 'unsubscribed' }])
  // Taken out and added again, it stays without mail, as its owner has chosen.
  expect((await choose([])).json().addresses).toEqual([])
  expect((await choose([one])).statusCode).toBe(409)
  expect(tested).toHaveLength(1)
})

it('an address that nobody confirms gets one mail a day, however often it is added and removed', async () => {
  const { choose, shown, click, tested, pass } = await open()
  for (let at = 0; at < 5; at += 1) {
    await choose([one])
    await choose([])
  }
  expect(tested).toHaveLength(1)
  expect((await shown()).addresses).toEqual([])
  expect((await click(one)).statusCode).toBe(404)
  for (const variant of ['ONE@acme.example', 'one@ACME.example']) await choose([variant])
  expect(tested).toHaveLength(1)
  pass(hourMs / 60)
  const more = Array.from({ length: 5 }, (_, at) => `n${at}@acme.example`)
  expect((await choose(more)).statusCode).toBe(409)
  expect((await choose(more.slice(0, 4))).statusCode).toBe(200)
  expect(tested).toHaveLength(5)
  pass(25 * hourMs)
  expect((await click(one)).statusCode).toBe(404)
  expect((await shown()).addresses).toEqual([])
  expect((await choose([one])).statusCode).toBe(200)
  expect(tested).toHaveLength(6)
})

it('a customer chooses for itself alone, where its plan lets it and customers get mail; links of others change nothing', async () => {
  const { ask, token, choose, app } = await open()
  expect(
    (await ask('PUT /v1/subjects/bolt/own-alerts', { token, body: { addresses: [], percents: [] } })).statusCode,
  ).toBe(403)
  expect((await ask('/v1/subjects/bolt/own-alerts', { token })).statusCode).toBe(403)
  for (const body of [
    { addresses: ['no address'], percents: [] },
    { addresses: [], percents: [0] },
    { addresses: [one] },
  ])
    expect([body, (await ask(`PUT ${path}`, { token, body })).statusCode]).toEqual([
      body,
      expect.toSatisfy((status) => status === 400 || status === 422),
    ])
  await choose([one])
  for (const url of [
    `/confirm/${signAddress(['another key that is long enough to sign'], 'confirm', { subject: 'acme', addressHash: hashOf(one) })}`,
    `/confirm/${signAddress([key], 'confirm', { subject: 'acme', addressHash: hashOf(two) })}`,
    `/confirm/${signAddress([key], 'unsubscribe', { subject: 'acme', addressHash: hashOf(one) })}`,
  ])
    expect((await app.inject({ method: 'POST', url })).statusCode).toBe(404)
  const closed = await open({ allowed: false })
  expect([(await closed.shown()).allowed, (await closed.choose([one])).statusCode]).toEqual([false, 409])
  const silent = await open({ endpoint: false })
  expect((await silent.choose([one])).json().detail).toContain('no endpoint of type subject')
  expect((await silent.choose([], [50])).json().percents).toEqual([50])
})

it('what was chosen ends with the permission and with the subject; choosing the same again changes nothing', async () => {
  const { ask, choose, shown, click, store } = await open()
  await choose([one, two], [50])
  await click(one)
  const published = store.published.length
  await choose([one, two], [50])
  expect(store.published).toHaveLength(published)
  const targets = () => addressesOf(store.state.policy, 'acme').map(({ address }) => address)
  expect(targets()).toEqual([one])
  await ask('PUT /v1/subjects/acme', { body: { plan: 'free' } })
  expect([targets(), (await click(two)).statusCode]).toEqual([[], 404])
  expect([(await choose([one])).statusCode, (await choose([])).statusCode]).toEqual([409, 200])
  await ask('PUT /v1/subjects/acme', { body: { plan: 'free', ownAlerts: true } })
  await choose([], [90])
  expect((await ask('DELETE /v1/subjects/acme')).statusCode).toBe(204)
  await ask('PUT /v1/subjects/acme', { body: { plan: 'free', ownAlerts: true } })
  expect((await shown()).percents).toEqual([])
})

it('two addresses with one short name are not both a customer’s, and no unseen character is in one', async () => {
  const { choose, tested } = await open()
  // Their SHA-256 begins alike: by such a pair the owner of one address could confirm another's.
  expect((await choose(['evil+18cdp@gmail.com', 'victim+i8p3l@gmail.com'])).statusCode).toBe(409)
  expect((await choose(['a\u0001b@acme.example'])).statusCode).toBe(409)
  expect(tested).toEqual([])
})
