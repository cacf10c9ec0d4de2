import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { UsageQuery } from '@weir/api/query/usage-query.ts'
import { describe, expect, it } from 'vitest'
import type { Sources } from './sources.ts'
import { nowMs, openConsole, smallPolicy } from './testing/open-console.ts'
import type { PagePosition } from './usage/usage-queries.ts'
import type { UsageSource } from './usage/usage-source.ts'

/** A token of acme's alone, as a line of a policy. */
const limited = `  limited: { sha256: ${hash('sha256', 'limited-token', 'hex')}, scopes: [usage], subjects: [acme] }`

describe('GET /v1/usage', () => {
  it('asks for the last 24 hours by hour in UTC unless told otherwise', async () => {
    const { ask, questions } = openConsole()
    const answer = await ask('/v1/usage')
    expect(answer.json()).toMatchObject({
      from: '2026-11-20T12:00:00.000Z',
      to: '2026-11-21T12:00:00.000Z',
      step: 'hour',
    })
    expect(questions).toMatchObject([{ only: {}, except: {}, by: [], timeZone: 'UTC' }])
  })

  it('takes everything that the contract names', async () => {
    const { ask, questions } = openConsole()
    const query =
      'subject=acme&subject=bolt&plan=free&not_outcome=deny&subject_prefix=a&from=2026-11-01&to=2026-11-02T00:00:00Z&by=route,outcome&step=day&time_zone=Asia/Kathmandu'
    await ask(`/v1/usage?${query}`)
    expect(questions).toEqual([
      {
        only: { subject: ['acme', 'bolt'], plan: ['free'] },
        except: { outcome: ['deny'] },
        subjectPrefix: 'a',
        fromMs: Date.parse('2026-11-01T00:00:00+05:45'),
        toMs: Date.parse('2026-11-02'),
        by: ['route', 'outcome'],
        step: 'day',
        timeZone: 'Asia/Kathmandu',
      },
    ])
  })

  it('takes a month of one subject, which may be the caller’s own', async () => {
    const { ask, applyFile, questions } = openConsole()
    const file = smallPolicy.replace('acme: { plan: free,', 'acme: { timeZone: Asia/Kathmandu, anchor: 3, plan: free,')
    expect((await applyFile(`${file.trimEnd()}\n${limited}`)).statusCode).toBe(200)
    const answer = await ask('/v1/usage?period=2026-11&subject=acme')
    expect(answer.json()).toMatchObject({
      from: '2026-11-02T18:15:00.000Z',
      to: '2026-12-02T18:15:00.000Z',
      time_zone: 'Asia/Kathmandu',
    })
    expect((await ask('/v1/usage?period=2026-11', { token: 'limited-token' })).statusCode).toBe(200)
    expect(questions[1]).toMatchObject({ fromMs: questions[0]?.fromMs, toMs: questions[0]?.toMs })
    expect((await ask('/v1/usage?period=2026-11&subject=unlisted')).json().from).toBe('2026-11-01T00:00:00.000Z')
    for (const more of ['', '&subject=acme&subject=bolt']) {
      const refused = await ask(`/v1/usage?period=2026-11${more}`)
      expect([refused.statusCode, refused.json().detail]).toEqual([
        400,
        'period takes exactly one subject, whose month it is',
      ])
    }
  })

  it('names every wrong parameter in one answer', async () => {
    const { ask, questions } = openConsole()
    const answer = await ask(
      `/v1/usage?from=2026-02-31&to=yesterday&by=colour&from=2026&step=year&plan=${'x'.repeat(513)}&${'route=a&'.repeat(101)}time_zone=Mars/Olympus&limit=0&colour=red&top=3`,
    )
    expect(answer.statusCode).toBe(400)
    for (const word of [
      'from is given 2 times',
      'yesterday',
      'a value of plan is longer than 512 bytes',
      'route has 101 values',
      'colour',
      'step must be',
      'Mars/Olympus',
      'limit must be',
      'top needs by',
    ]) {
      expect(answer.json().detail).toContain(word)
    }
    expect(questions).toEqual([])
  })

  it('writes sums as numbers of all their digits, and as text where a reader asks for it', async () => {
    const row = { plan: '"cost":"5"', count: '7', allowed: '7', denied: '0', cost: '-36800000000000000001' }
    const { ask } = openConsole({ askUsage: async () => [row] })
    const written = async (query: string) => /"rows":(\[.*\])/.exec((await ask(`/v1/usage${query}`)).body)?.[1]
    expect(await written('')).toBe(
      '[{"plan":"\\"cost\\":\\"5\\"","count":7,"allowed":7,"denied":0,"cost":-36800000000000000001}]',
    )
    expect(await written('?numbers=text')).toBe(JSON.stringify([row]))
    expect((await ask('/v1/usage?numbers=float')).json().detail).toContain('numbers must be json or text')
  })

  it('is read page by page, from the same instants on each, and by nobody else', async () => {
    const rows = ['a', 'b', 'c'].map((route) => ({ route, count: '1', allowed: '1', denied: '0', cost: '1' }))
    const asked: [UsageQuery, PagePosition][] = []
    const clock = { nowMs: () => nowMs + asked.length * 60_000 }
    const askUsage: UsageSource['askUsage'] = async (_, query, position = { rowsMax: 0 }) => {
      asked.push([query, position])
      return rows.filter(({ route }) => route > (position.after?.at(-1) ?? '')).slice(0, position.rowsMax)
    }
    const { ask } = openConsole({ askUsage, clock })
    const first = await ask('/v1/usage?by=route&step=total&limit=2')
    const { next, ...answered } = first.json()
    expect(answered).toMatchObject({ cut_off: true, rows: [{ route: 'a' }, { route: 'b' }] })
    expect(first.headers.link).toBe(`</v1/usage?by=route&step=total&limit=2&after=${next}>; rel="next"`)
    const second = await ask(`/v1/usage?by=route&step=total&limit=2&after=${next}`)
    expect(second.json()).toMatchObject({ ...answered, cut_off: false, next: null, rows: [{ route: 'c' }] })
    expect(second.headers.link).toBeUndefined()
    expect(asked[1]).toEqual([asked[0]?.[0], { after: ['b'], rowsMax: 3 }])
    for (const other of ['by=method&step=total', 'by=route&step=day', 'by=route&step=total&plan=free']) {
      const refused = await ask(`/v1/usage?${other}&after=${next}`)
      expect([refused.statusCode, refused.json().type]).toEqual([400, 'urn:weir:problem:cursor-invalid'])
    }
  })

  it('has an ETag once all of its time is counted, which is of one reader and one question', async () => {
    const counted = { completeThroughMs: Date.parse('2026-11-03T00:00:00Z'), silent: [] }
    let cost = '3'
    const { ask, applyFile } = openConsole({
      askCompleteness: async () => counted,
      askUsage: async () => [{ count: '1', allowed: '1', denied: '0', cost }],
    })
    expect((await applyFile(`${smallPolicy.trimEnd()}\n${limited}`)).statusCode).toBe(200)
    const path = '/v1/usage?subject=acme&from=2026-11-01&to=2026-11-03&step=total'
    const { headers } = await ask(path)
    const known = { 'if-none-match': `"x", W/${headers.etag}` }
    const again = async (more = '', token = 'token') =>
      (await ask(`${path}${more}`, { headers: known, token })).statusCode
    counted.completeThroughMs += 5
    expect([headers['cache-control'], await again()]).toEqual(['private, no-cache', 304])
    expect([await again('', 'limited-token'), await again('&by=plan'), await again('&numbers=text')]).toEqual([
      200, 200, 200,
    ])
    cost = '2'
    expect(await again()).toBe(200)
    counted.completeThroughMs -= 6
    expect((await ask(path)).headers.etag).toBeUndefined()
  })

  it('names what is missing of its time and of the time before, to customers without how much', async () => {
    const asked: object[] = []
    const gap = { cause: 'journal_full', partition: 3, count: '7', fromMs: nowMs, toMs: nowMs + 1 }
    const { ask, applyFile } = openConsole({
      readGaps: async (rows, span) => {
        asked.push({ rows, ...span })
        return [gap, { ...gap, cause: 'expired', fromMs: 0, toMs: 0 }]
      },
    })
    expect((await applyFile(`${smallPolicy.trimEnd()}\n${limited}`)).statusCode).toBe(200)
    const times = { from: '2026-11-21T12:00:00.000Z', to: '2026-11-21T12:00:00.001Z' }
    const path = '/v1/usage?from=2026-11-02&to=2026-11-03'
    expect((await ask(`${path}&compare=previous`)).json().gaps).toEqual([
      { cause: 'journal_full', partition: 3, count: 7, ...times },
      { cause: 'expired', partition: 3, count: 7, from: null, to: null },
    ])
    const own = await ask(path, { token: 'limited-token' })
    expect(own.json().gaps).toEqual([
      { cause: 'journal_full', ...times },
      { cause: 'expired', from: null, to: null },
    ])
    const [fromMs, toMs] = [Date.parse('2026-11-01'), Date.parse('2026-11-03')]
    expect(asked[0]).toEqual({ rows: 'decisions', fromMs, toMs })
    expect((await ask('/v1/outcomes?format=csv')).headers['weir-gaps']).toBe('2')
  })

  it('with fill=zero is asked for each step, with those that are all counted', async () => {
    const filled: unknown[] = []
    const { ask } = openConsole({
      askCompleteness: async () => ({ completeThroughMs: Date.parse('2026-11-02T00:00:00Z'), silent: [] }),
      askUsage: async (_reach, _query, position = { rowsMax: 0 }) => {
        filled.push(position.filled)
        return JSON.parse('[{"count":null,"allowed":null,"denied":null,"cost":null}]')
      },
      openStream: async (_reach, question) => {
        filled.push(question.filled)
        return Readable.from([])
      },
    })
    const path = '/v1/usage?from=2026-11-01&to=2026-11-03&step=day&fill=zero'
    expect((await ask(path)).json().rows).toMatchObject([{ count: null, cost: null }])
    await ask(`${path}&format=csv`)
    await ask(path.replace('&fill=zero', ''))
    const starts = ['2026-11-01', '2026-11-02'].map((day) => Date.parse(day) / 1_000)
    expect(filled).toEqual([{ starts, counted: [1, 0] }, { starts, counted: [1, 0] }, undefined])
  })

  it('shows the sums of the span before as an object of its own, and the change', async () => {
    const sums = { count: '1', allowed: '1', denied: '0', cost: '3' }
    const before = { previous_count: '2', previous_allowed: '2', previous_denied: '0', previous_cost: '2', change: 0.5 }
    const { ask } = openConsole({
      askUsage: async () => [{ plan: 'free', ...sums, ...before }],
      askUsageTotals: async () => ({ ...sums, ...before, change: null }),
    })
    const previous = { count: 2, allowed: 2, denied: 0, cost: 2 }
    const own = { count: 1, allowed: 1, denied: 0, cost: 3 }
    const answer = await ask('/v1/usage?by=plan&step=total&from=2026-11-01&to=2026-11-02&compare=previous')
    expect(answer.json()).toMatchObject({
      previous: { from: '2026-10-31T00:00:00.000Z', to: '2026-11-01T00:00:00.000Z' },
      rows: [{ plan: 'free', ...own, previous, change: 0.5 }],
      totals: { ...own, previous, change: null },
    })
    expect((await ask('/v1/outcomes?compare=previous')).statusCode).toBe(400)
  })

  it('sums the groups beyond the largest in one row without names, and all of them in totals', async () => {
    const sums = { count: '1', allowed: '1', denied: '0', cost: '1' }
    const answer = await openConsole({
      askUsage: async () => [
        { subject: 'acme', other: false, groups: '1', ...sums },
        { subject: '', other: true, groups: '41', ...sums },
      ],
      askUsageTotals: async () => ({ ...sums, cost: '2' }),
    }).ask('/v1/usage?top=1&by=subject&step=total&numbers=text')
    expect(answer.json()).toMatchObject({ source: 'usage_15m', totals: { ...sums, cost: '2' } })
    expect(answer.json().rows).toEqual([
      { subject: 'acme', ...sums },
      { other: true, groups: '41', ...sums },
    ])
  })

  it('says until when its sums are complete, and whose rest may come later, as known before the sums were read', async () => {
    const asked: string[] = []
    const answer = await openConsole({
      askCompleteness: async (rows) => {
        asked.push(rows)
        const silent = [{ journal: 'j1', sinceMs: nowMs - 90_000 }]
        return { completeThroughMs: nowMs - 1_500, silent }
      },
      askUsage: async () => {
        asked.push('sums')
        return []
      },
    }).ask('/v1/usage')
    expect(answer.json()).toMatchObject({
      complete_through: '2026-11-21T11:59:58.500Z',
      silent: [{ journal: 'j1', since: '2026-11-21T11:58:30.000Z' }],
    })
    expect(asked).toEqual(['decisions', 'sums'])
    expect((await openConsole().ask('/v1/usage')).json()).toMatchObject({ complete_through: null, silent: [] })
  })

  it('is not answered to a request with more than 200 headers', async () => {
    const headers = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`a-${at}`, 'a']))
    const answer = await openConsole().ask('/v1/usage', { headers })
    expect([answer.statusCode, answer.json().type]).toEqual([431, 'urn:weir:problem:headers-too-large'])
  })

  it('names twenty wrong members of a body, and how many more there are', async () => {
    const body = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`wrong-${at}`, 1]))
    const answer = await openConsole().ask('POST /v1/deliveries/redeliver', { body })
    expect([answer.statusCode, answer.json().detail]).toEqual([400, expect.stringContaining('"wrong-3"')])
    expect(answer.json().detail).toMatch(/, and 9981 more$/)
  })

  it('reports that ClickHouse is down, and does not show what it said', async () => {
    const answer = await openConsole({
      askUsage: async () => Promise.reject(new Error('password in the message')),
    }).ask('/v1/usage')
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5'])
    expect(answer.body).not.toContain('password')
  })
})

describe('GET /v1/outcomes', () => {
  it('asks for statuses and latencies by what their rollup has, and how far it is complete', async () => {
    const asked: string[] = []
    const { ask, outcomeQuestions } = openConsole({
      askCompleteness: async (rows) => {
        asked.push(rows)
        return { completeThroughMs: nowMs, silent: [] }
      },
    })
    const answer = await ask('/v1/outcomes?subject=acme&by=route,method&step=day')
    expect(answer.json()).toMatchObject({ step: 'day', complete_through: '2026-11-21T12:00:00.000Z', rows: [] })
    expect(outcomeQuestions).toMatchObject([{ only: { subject: ['acme'] }, by: ['route', 'method'], step: 'day' }])
    expect(asked).toEqual(['outcomes'])
  })

  it('rejects the step minute', async () => {
    const answer = await openConsole().ask('/v1/outcomes?step=minute')
    expect([answer.statusCode, answer.json().detail]).toEqual([400, expect.stringContaining('step must be one of')])
  })
})
