import { expect, it } from 'vitest'
import { openConsole } from '../testing/open-console.ts'

it('a question in a body is the one that a query asks, cursors too', async () => {
  const row = (subject: string) => ({ subject, count: '1', allowed: '1', denied: '0', cost: '1' })
  const asked: unknown[] = []
  const { ask } = openConsole({
    askUsage: async (_reach, question, position = { rowsMax: 0 }) => {
      asked.push([question, position.after])
      return [row('a'), row('b')] as never
    },
  })
  const query = '/v1/usage?subject=a&subject=b&by=subject&step=total&limit=1&order=-cost'
  const body = { subject: ['a', 'b'], by: 'subject', step: 'total', limit: 1, order: '-cost' }
  const [byQuery, byBody] = [await ask(query), await ask('POST /v1/usage', { body })]
  expect([byBody.statusCode, byBody.json()]).toEqual([200, byQuery.json()])
  expect([byQuery.headers.link, byBody.headers.link]).toEqual([expect.any(String), undefined])
  const { next } = byBody.json()
  expect((await ask('POST /v1/usage', { body: { ...body, after: next } })).statusCode).toBe(200)
  expect((await ask(`${query}&after=${next}`)).statusCode).toBe(200)
  expect(asked[1]).toEqual(asked[0])
  expect(asked[3]).toEqual(asked[2])
})

it.each([
  [[], 'the body must be an object'],
  [{ subject: [] }, 'subject has no value; leave it out to ask for all'],
  [{ subject: null, top: {} }, 'subject must be a text, a number, true, false, or a list of texts; top must be'],
  [{ not_method: [7] }, 'not_method must be a text, a number, true, false, or a list of texts'],
  [{ by: ['subject', 'route'] }, 'by is given 2 times'],
  [{ colour: 'red', limit: 0 }, 'unknown parameters: colour'],
])('refuses the body %j', async (body, words) => {
  const { ask, questions } = openConsole()
  const answer = await ask('POST /v1/usage', { body })
  expect([answer.statusCode, answer.json().detail]).toEqual([400, expect.stringContaining(words)])
  expect(questions).toEqual([])
})
