import { addAbortSignal, Readable } from 'node:stream'
import { QuestionBoundMet } from '@weir/clickhouse/question-bounds.ts'
import { problem } from '@weir/runtime/problem.ts'
import fastify from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Semaphore } from '../http/semaphore.ts'
import { openConsole } from '../testing/open-console.ts'
import { answerStream } from './stream-answer.ts'

const said = new Error('password in the message')

describe('a stream of usage', () => {
  it.each([
    [new QuestionBoundMet('too-large', said), 422, 'question-too-large'],
    [new QuestionBoundMet('timed-out', said), 504, 'question-timed-out'],
    [said, 503, 'usage-unavailable'],
  ])('that cannot be opened for %s is answered with %s, %s, as a page is', async (error, status, type) => {
    const fails = () => Promise.reject(error)
    const { ask } = openConsole({ openStream: fails, askUsage: fails })
    for (const query of ['?format=csv', '?format=csv', '?format=csv', '']) {
      const answer = await ask(`/v1/usage${query}`)
      expect([answer.statusCode, answer.json().type]).toEqual([status, `urn:weir:problem:${type}`])
      expect(answer.headers['content-type']).toBe('application/problem+json')
      expect(answer.body).not.toContain('password')
    }
  })

  it('that takes longer than it may is 504 before it begins, and cut off after that', async () => {
    const app = fastify()
    const semaphores = new Semaphore({ all: 8, perCredential: 2 })
    const rest = (signal: AbortSignal) => new Promise<never>((_, fail) => (signal.onabort = () => fail(signal.reason)))
    const endless = async (signal: AbortSignal) => {
      const stream = new Readable({ read: () => undefined })
      stream.push('a row')
      return addAbortSignal(signal, stream)
    }
    for (const [path, open] of [['/late', rest] as const, ['/cut', endless] as const]) {
      const askCompleteness = async () => ({ completeThroughMs: undefined, silent: [] })
      const unavailable = problem('usage-unavailable', 'Unavailable', 503, 'no answer')
      const readGaps = async () => []
      const answer = { format: 'csv', name: 'usage', askCompleteness, readGaps, open, unavailable, msMax: 20 } as const
      app.get(path, (request, reply) => answerStream(request, reply, semaphores, answer))
    }
    app.decorateRequest('by', 'root')
    const origin = await app.listen({ host: '127.0.0.1', port: 0 })
    onTestFinished(() => app.close())
    const late = await fetch(`${origin}/late`)
    expect([late.status, await late.json()]).toMatchObject([504, { type: 'urn:weir:problem:question-timed-out' }])
    const cut = await fetch(`${origin}/cut`)
    expect(cut.status).toBe(200)
    await expect(cut.text()).rejects.toThrow('terminated')
  })

  it('says how far it is complete as known before it was opened, and how many journals are silent', async () => {
    const asked: string[] = []
    const { ask } = openConsole({
      askCompleteness: async (rows) => {
        asked.push(rows)
        return { completeThroughMs: 0, silent: [{ journal: 'j1', sinceMs: 1 }] }
      },
      openStream: async (_reach, { form }) => {
        asked.push(form.format)
        return Readable.from([Buffer.from('rows')])
      },
    })
    const { headers, body } = await ask('/v1/outcomes', { headers: { accept: 'text/csv;q=0.5, application/jsonl' } })
    expect([asked, body]).toEqual([['outcomes', 'jsonl'], 'rows'])
    expect(headers).toMatchObject({
      'weir-complete-through': '1970-01-01T00:00:00.000Z',
      'weir-silent': '1',
      'weir-gaps': '0',
    })
    expect(headers['content-disposition']).toBe('attachment; filename="outcomes-2026-11-20-2026-11-21.jsonl"')
  })

  it('takes no parameters that only pages or other formats have', async () => {
    const { ask } = openConsole()
    const said = async (query: string) => (await ask(`/v1/usage?${query}`)).json().detail
    expect(await said('format=xml')).toBe('format must be one of json, csv, jsonl, parquet')
    expect(await said('format=parquet&limit=5&csv=exact&numbers=text')).toBe(
      'numbers needs json or jsonl: other formats are always exact; csv needs format=csv; limit needs format=json: parquet has no pages',
    )
  })
})
