import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { CheckResult } from './check-result.ts'
import { type ClientOptions, createClient } from './create-client.ts'
import { checksOf, decision, inBatch, openStubWeir, refusal, type StubWeir, sendJson } from './testing/stub-weir.ts'

let weir: StubWeir
beforeEach(async () => {
  weir = await openStubWeir()
  weir.answerBatchesWith((asked, response) =>
    sendJson(response, { results: checksOf(asked).map(({ subject }) => inBatch(decision({ id: subject }))) }),
  )
})
afterEach(() => weir[Symbol.asyncDispose]())

function open(options: Partial<ClientOptions> = {}) {
  // No answer takes longer here, however busy the machine is.
  const client = createClient({ url: weir.url, key: 'secret', timeoutMs: 60_000, ...options })
  onTestFinished(() => client.close())
  return client
}

/** Stops the clock of timers. `expect.poll` would move it. */
function stopClock() {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
}

const paths = () => weir.asked.map(({ path }) => path)
const sizes = () => weir.asked.map((one) => (one.path === '/v1/check' ? 1 : checksOf(one).length))
const named = (count: number, text = '') => Array.from({ length: count }, (_, at) => ({ subject: `s${at}${text}` }))
const problem = (status: number) => ({ type: 'urn:weir:problem:some', title: 'Some', status, detail: 'words of Weir' })

describe('checks of one turn of the event loop', () => {
  it('are one request, each with its own decision and headers', async () => {
    const client = open()
    const results = await Promise.all(named(5).map((one) => client.check({ ...one, wait: 0 })))
    expect(weir.asked.map(({ path, body }) => ({ path, body }))).toEqual([
      { path: '/v1/check/batch', body: { headers: true, checks: named(5) } },
    ])
    expect(weir.asked[0]?.headers.authorization).toBe('Bearer secret')
    expect(results.map(({ id }) => id)).toEqual(named(5).map(({ subject }) => subject))
    // Word for word what a check of its own results in.
    expect(results[0]).toEqual({ ...(await client.check({ subject: 's0' })), id: 's0' })
    expect(paths()).toEqual(['/v1/check/batch', '/v1/check'])
  })

  it('are at most 100 to a request, and fewer if they are long', async () => {
    const client = open()
    await Promise.all(named(230).map((one) => client.check(one)))
    expect(sizes().toSorted()).toEqual([100, 100, 30].toSorted())
    await Promise.all(named(6, 'é'.repeat(30_000)).map((one) => client.check(one)))
    expect(sizes().slice(3)).toEqual([2, 2, 2])
  })

  it('are denied, malformed and unrecorded each for itself', async () => {
    const unrecorded = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
    weir.answerBatchesWith((_, response) =>
      sendJson(response, {
        results: [
          inBatch(decision()),
          inBatch(refusal(1_200)),
          { problem: problem(400) },
          { problem: { ...problem(503), type: unrecorded }, headers: { 'retry-after': '7' } },
          { problem: problem(503) },
          7,
        ],
      }),
    )
    const client = open({ onUnavailable: 'allow' })
    const results = await Promise.allSettled(named(6).map((one) => client.check(one)))
    expect(results).toMatchObject([
      { value: { allowed: true } },
      { value: { allowed: false, reason: 'limit', headers: { 'retry-after': '2', 'weir-decision': '0199' } } },
      { reason: { code: 'bad_request', statusCode: 500, problem: problem(400) } },
      { value: { allowed: false, reason: 'journal_full', retryAfterMs: 7_000 } },
      { value: { allowed: true, reason: 'unavailable' } },
      { reason: { code: 'unexpected_answer' } },
    ])
  })

  it.each([
    [401, 'unauthorized'],
    [429, 'throttled'],
    [500, 'unavailable'],
  ])('whose request is answered with %i fail with it, and are not asked again', async (status, code) => {
    weir.answerBatchesWith((_, response) => sendJson(response, problem(status), status))
    const client = open()
    for (const one of named(3).map((each) => client.check(each))) await expect(one).rejects.toMatchObject({ code })
    expect(sizes()).toEqual([3])
  })

  it.each(['<html>', '{"results":[]}', '{"results":[{"allowed":true}]}', '{"results":7}', '[]'])(
    'whose request is answered with %s fail as asked of something else',
    async (text) => {
      weir.answerBatchesWith((_, response) => void response.end(text))
      const client = open({ onUnavailable: 'allow' })
      const checks = named(3).map((one) => client.check(one))
      for (const one of checks) await expect(one).rejects.toMatchObject({ code: 'unexpected_answer' })
    },
  )

  it.each([302, 400, 403, 404, 405, 413])(
    'are asked one by one where a batch is answered with %i, and so are later ones',
    async (status) => {
      weir.answerBatchesWith((_, response) => sendJson(response, problem(status), status))
      const client = open()
      for (let round = 0; round < 2; round += 1) {
        const results = await Promise.all(named(3).map((one) => client.check(one)))
        expect(results.map(({ allowed }) => allowed)).toEqual([true, true, true])
      }
      expect(sizes()).toEqual([3, 1, 1, 1, 1, 1, 1])
    },
  )
})

describe('while a request is under way', () => {
  it('checks gather for the next', async () => {
    const client = open()
    const rest: Promise<CheckResult>[] = []
    weir.answerWith((_, response) => {
      // In three turns of the event loop, all before the answer.
      for (let at = 0; at < 3; at += 1) setImmediate(() => rest.push(client.check({ subject: `s${at}` })))
      setImmediate(() => setImmediate(() => sendJson(response, decision())))
    })
    stopClock()
    await client.check()
    while (rest.length < 3) await new Promise((done) => setImmediate(done))
    expect((await Promise.all(rest)).map(({ id }) => id)).toEqual(['s0', 's1', 's2'])
    expect(sizes()).toEqual([1, 3])
  })

  it('and hangs, later checks go as soon as there are 32, and after 20 ms in any case', async () => {
    const arrived = Promise.withResolvers<void>()
    weir.answerWith(() => arrived.resolve())
    const client = open()
    stopClock()
    const left = new AbortController()
    const hanging = client.check({}, { signal: left.signal })
    await arrived.promise
    const early = named(31).map((one) => client.check(one))
    // Whatever was to be sent is sent by then.
    for (let turns = 0; turns < 100; turns += 1) await new Promise((done) => setImmediate(done))
    expect(sizes()).toEqual([1])
    await Promise.all([...early, client.check()])
    expect(sizes()).toEqual([1, 32])
    const late = named(2).map((one) => client.check(one))
    await vi.advanceTimersByTimeAsync(20)
    expect(await Promise.all(late)).toMatchObject([{ id: 's0' }, { id: 's1' }])
    expect(sizes()).toEqual([1, 32, 2])
    left.abort(new Error('left'))
    await expect(hanging).rejects.toThrow('left')
  })

  it('each check has its own time and signal, and the request ends when no check of it is awaited', async () => {
    const arrived = Promise.withResolvers<void>()
    weir.answerBatchesWith(() => arrived.resolve())
    const client = open()
    stopClock()
    const left = new AbortController()
    const first = client.check({}, { timeoutMs: 50 })
    const second = client.check({}, { signal: left.signal })
    await arrived.promise
    vi.advanceTimersByTime(49)
    const early = await Promise.race([first, new Promise((done) => setImmediate(done, 'awaited'))])
    vi.advanceTimersByTime(1)
    await expect(first).rejects.toMatchObject({ code: 'unavailable' })
    expect([early, sizes(), weir.asked[0]?.socket.destroyed]).toEqual(['awaited', [2], false])
    left.abort(new Error('changed my mind'))
    await expect(second).rejects.toThrow('changed my mind')
    vi.useRealTimers()
    await expect.poll(() => weir.asked[0]?.socket.destroyed).toBe(true)
  })

  it('a check that was given up before it was sent is not asked', async () => {
    const client = open()
    const left = new AbortController()
    const checks = named(3).map((one, at) => client.check(one, at === 1 ? { signal: left.signal } : {}))
    left.abort(new Error('left'))
    await expect(checks[1]).rejects.toThrow('left')
    await Promise.all([checks[0], checks[2]])
    expect(weir.asked.map((one) => checksOf(one))).toEqual([[{ subject: 's0' }, { subject: 's2' }]])
  })

  it('close waits for the checks that are gathered, and later ones are refused', async () => {
    const client = createClient({ url: weir.url, key: 'secret', timeoutMs: 60_000 })
    const checks = named(230).map((one) => client.check(one))
    const closed = client.close()
    await expect(client.check()).rejects.toMatchObject({ code: 'closed' })
    expect((await Promise.all(checks)).map(({ id }) => id)).toEqual(named(230).map(({ subject }) => subject))
    await closed
  })
})

it('a batch whose connection is lost repeats only checks that are charged once, and once', async () => {
  weir.answerBatchesWith(({ socket }) => void socket.destroy())
  const client = open({ onUnavailable: 'deny' })
  const requests = [{}, { idempotencyKey: 'a' }, { peek: true }, {}]
  const results = await Promise.all(requests.map((one) => client.check(one)))
  expect(results.map(({ reason }) => reason)).toEqual(requests.map(() => 'unavailable'))
  expect(weir.asked.map((one) => checksOf(one))).toEqual([
    [{}, { idempotency_key: 'a' }, { peek: true }, {}],
    [{ idempotency_key: 'a' }, { peek: true }],
  ])
})

it('a check that waits goes alone, and holds none of the others back', async () => {
  const answers: (() => void)[] = []
  weir.answerWith((_, response) => void answers.push(() => sendJson(response, decision())))
  const client = open()
  const waiting = client.check({ wait: '20s' })
  expect(await Promise.all(named(2).map((one) => client.check(one)))).toMatchObject([{ id: 's0' }, { id: 's1' }])
  await expect.poll(() => answers.length).toBe(1)
  answers[0]?.()
  expect(await waiting).toMatchObject({ allowed: true })
  expect(sizes().toSorted()).toEqual([1, 2])
})
