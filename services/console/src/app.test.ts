import { describe, expect, it } from 'vitest'
import { openConsole } from './testing/open-console.ts'

describe('GET /v1/usage', () => {
  it('asks for the last 24 hours by hour in UTC unless told otherwise', async () => {
    const { ask, questions } = openConsole()
    const answer = await ask('/v1/usage')
    expect(answer.json()).toMatchObject({
      from: '2026-11-20T12:00:00.000Z',
      to: '2026-11-21T12:00:00.000Z',
      step: 'hour',
    })
    expect(questions).toMatchObject([{ subject: undefined, by: [], timeZone: 'UTC' }])
  })

  it('takes everything that the contract names', async () => {
    const { ask, questions } = openConsole()
    const query =
      'subject=acme&from=2026-11-01&to=2026-11-02T00:00:00Z&by=route,outcome&step=day&time_zone=Asia/Kathmandu'
    await ask(`/v1/usage?${query}`)
    expect(questions).toEqual([
      {
        subject: 'acme',
        fromMs: Date.parse('2026-11-01'),
        toMs: Date.parse('2026-11-02'),
        by: ['route', 'outcome'],
        step: 'day',
        timeZone: 'Asia/Kathmandu',
      },
    ])
  })

  it('names every wrong parameter at once', async () => {
    const { ask, questions } = openConsole()
    const answer = await ask(
      '/v1/usage?from=2026-02-31&to=yesterday&by=colour&subject=a&subject=b&step=year&time_zone=Mars/Olympus&limit=3',
    )
    expect(answer.statusCode).toBe(400)
    for (const word of [
      '2026-02-31',
      'yesterday',
      'subject is given 2 times',
      'colour',
      'step must be',
      'Mars/Olympus',
      'limit',
    ]) {
      expect(answer.json().detail).toContain(word)
    }
    expect(questions).toEqual([])
  })

  it.each(['', 'Bearer wrong', 'Basic token', 'Bearer '])(
    'tells nothing to a caller with "%s"',
    async (authorization) => {
      const answer = await openConsole().ask('/v1/usage', { headers: { authorization } })
      expect([answer.statusCode, answer.headers['www-authenticate']]).toEqual([401, 'Bearer'])
    },
  )

  it('says that ClickHouse is away, and not what it said', async () => {
    const answer = await openConsole({
      askUsage: async () => Promise.reject(new Error('password in the message')),
    }).ask('/v1/usage')
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5'])
    expect(answer.body).not.toContain('password')
  })
})
