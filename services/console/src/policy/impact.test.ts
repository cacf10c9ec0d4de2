import { QuestionBoundMet } from '@weir/clickhouse/question-bounds.ts'
import type { Impact } from '@weir/explain/impact/impact.ts'
import type { PolicyEdit } from '@weir/explain/impact/policy-edit.ts'
import type { ImpactQuestion } from '@weir/explain/impact/replay-impact.ts'
import { expect, it } from 'vitest'
import { nowMs, openConsole, smallPolicy } from '../testing/open-console.ts'

const path = 'POST /v1/policy/impact'
const impact: Impact = {
  exact: true,
  assumptions: [],
  limits: [],
  subjects: 1,
  decisions: 1,
  share: null,
  refused: { before: 1, after: 3 },
  to_refused: 2,
  to_admitted: 0,
}

/** A console with a policy, and the edits whose impact it was asked for. */
async function openAsked(answer: () => Promise<Impact> = async () => impact) {
  const asked: (ImpactQuestion & { readonly edit: PolicyEdit })[] = []
  const opened = openConsole({
    askImpact: async (edit, question) => {
      asked.push({ edit, ...question })
      return answer()
    },
  })
  await opened.applyFile()
  return { ...opened, asked }
}

const edited = smallPolicy
  .replace('size: 100', 'size: 7')
  .replace('per-ip: {', 'day: { algorithm: fixed_window, size: 5, period: day }\n  per-ip: {')
  .replace('acme: { plan: free', 'acme: { plan: gold')

it('asks about the 20 subjects with the most decisions in the last seven days, with the edit as the file has it, and changes nothing', async () => {
  const { ask, asked, store } = await openAsked()
  const response = await ask(path, { body: edited })
  expect([response.statusCode, response.json()]).toMatchObject([
    200,
    { exact: true, share: null, refused: { before: 1, after: 3 }, to_refused: 2, to_admitted: 0 },
  ])
  expect(asked).toMatchObject([{ fromMs: nowMs - 7 * 86_400_000, toMs: nowMs, subjects: undefined, top: 20 }])
  const edit = asked[0]?.edit
  expect([...(edit?.limits ?? [])]).toEqual([
    ['minute', 'changed'],
    ['day', 'added'],
  ])
  expect(edit?.resolve({ subject: 'acme', plan: 'free', route: '*' })).toMatchObject({
    subject: { plan: { name: 'gold' } },
    limits: [{ name: 'minute', size: 7 }, { name: 'per-ip' }],
  })
  expect(store.state?.get('limit', 'minute')?.body).toMatchObject({ size: 100 })
})

it('refuses a file, a span or a number of subjects that is not right, and says so where too much is asked for', async () => {
  const { ask } = await openAsked(async () => {
    throw new QuestionBoundMet('too-large', undefined)
  })
  const statusOf = async (query: string, body = edited) => (await ask(`${path}${query}`, { body })).statusCode
  expect(await statusOf('?from=now-8d')).toBe(400)
  expect(await statusOf('?from=yesterday')).toBe(400)
  for (const query of ['?top=0', '?top=101', '?top=x', '?top=5&subject=acme', '?top=1&top=2']) {
    expect([query, await statusOf(query)]).toEqual([query, 400])
  }
  expect(await statusOf('', edited.replace('size: 7', 'size: x'))).toBe(422)
  expect(await statusOf('')).toBe(422)
})

it('asks what one limit with other settings would have done to the subjects that are named, and changes nothing', async () => {
  const { ask, asked, store } = await openAsked()
  const settings = { algorithm: 'fixed_window', size: 7, window: '1m' }
  const body = { settings, subjects: ['acme'] }
  const response = await ask('POST /v1/limits/minute/impact', { body })
  expect([response.statusCode, response.json().refused]).toEqual([200, { before: 1, after: 3 }])
  expect(asked).toMatchObject([{ fromMs: nowMs - 7 * 86_400_000, subjects: ['acme'] }])
  expect([...(asked[0]?.edit.limits ?? [])]).toEqual([['minute', 'changed']])
  expect(store.state?.get('limit', 'minute')?.body).toMatchObject({ size: 100 })
  const wrong = await ask('POST /v1/limits/minute/impact', { body: { ...body, settings: { size: 'x' } } })
  expect([wrong.statusCode, (await ask('POST /v1/limits/none/impact', { body })).statusCode]).toEqual([422, 404])
})

it('tells two impacts at once, and answers the third with 429', async () => {
  const { promise, resolve } = Promise.withResolvers<Impact>()
  const { ask, asked } = await openAsked(() => promise)
  const two = [1, 2].map(() => ask(path, { body: edited }).then(({ statusCode }) => statusCode))
  expect((await ask(path, { body: edited })).statusCode).toBe(429)
  resolve(impact)
  expect(await Promise.all(two)).toEqual([200, 200])
  expect(asked).toHaveLength(2)
})
