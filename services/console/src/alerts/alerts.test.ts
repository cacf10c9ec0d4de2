import { describe, expect, it } from 'vitest'
import { knownAlert, openConsole, openWithPolicy } from '../testing/open-console.ts'

const awayPorts = {
  alerts: {
    list: () => Promise.reject(new Error('password in here')),
    find: () => Promise.reject(new Error('password in here')),
    listFailed: () => Promise.reject(new Error('password in here')),
    request: () => Promise.reject(new Error('password in here')),
    sendTest: () => Promise.reject(new Error('password in here')),
  },
}

describe('alerts', () => {
  it('are listed by page with the last outcome at each endpoint, and shown with every step', async () => {
    const { ask } = openConsole()
    const listed = (await ask('/v1/alerts')).json()
    expect(listed).toMatchObject({
      items: [
        {
          id: knownAlert,
          data: { limit: 'day' },
          deliveries: { ops: 'given_up' },
          summary: 'acme has used 80% of its limit day',
        },
      ],
      next: null,
    })
    const shown = (await ask(`/v1/alerts/${knownAlert}`)).json()
    expect(shown).toMatchObject({
      subject: 'acme',
      attempts_max: 10,
      deliveries: [{ endpoint: 'ops', attempt: 10, error: 'answered 500' }],
    })
  })

  it('are asked for by subject, type and time; a week back without one', async () => {
    const asked: object[] = []
    const { alerts } = awayPorts
    const list = async (_within: object, filter: object) => {
      asked.push(filter)
      return []
    }
    const { ask } = openConsole({ alerts: { ...alerts, list } })
    await ask('/v1/alerts?subject=acme&type=weir.quota.reached&from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z')
    await ask('/v1/alerts')
    const day = (text: string) => Date.parse(`${text}T00:00:00Z`)
    expect(asked).toMatchObject([
      { subject: 'acme', type: 'weir.quota.reached', fromMs: day('2026-11-01'), toMs: day('2026-11-02') },
      { fromMs: Date.parse('2026-11-14T12:00:00.001Z') },
    ])
  })

  it('are asked for by the last outcome of their deliveries, of which there are some', async () => {
    const asked: unknown[] = []
    const list = async (_within: object, { outcome }: { outcome?: readonly string[] | undefined }) => {
      asked.push(outcome)
      return []
    }
    const { ask } = openConsole({ alerts: { ...awayPorts.alerts, list } })
    await ask('/v1/alerts?outcome=given_up')
    await ask('/v1/alerts?outcome=failed&outcome=dropped')
    expect(asked).toEqual([['given_up'], ['failed', 'dropped']])
    for (const wrong of ['outcome=lost', 'outcome=', 'outcome=failed,dropped']) {
      expect([wrong, (await ask(`/v1/alerts?${wrong}`)).statusCode]).toEqual([wrong, 400])
    }
  })

  it('are asked for by endpoint, and by times as usage is', async () => {
    const asked: object[] = []
    const list = async (_within: object, filter: object) => {
      asked.push(filter)
      return []
    }
    const { ask } = openConsole({ alerts: { ...awayPorts.alerts, list } })
    await ask('/v1/alerts?endpoint=ops&from=now-24h')
    await ask('/v1/alerts?from=2026-11-20&to=2026-11-21&time_zone=Asia/Kathmandu')
    expect(asked).toEqual([
      { endpoint: 'ops', fromMs: Date.parse('2026-11-20T12:00:00.001Z'), toMs: Date.parse('2026-11-21T12:00:00.001Z') },
      { fromMs: Date.parse('2026-11-19T18:15:00Z'), toMs: Date.parse('2026-11-20T18:15:00Z') },
    ])
    for (const wrong of ['from=yesterday', 'from=now&to=now-1h', 'time_zone=Mars']) {
      expect([wrong, (await ask(`/v1/alerts?${wrong}`)).statusCode]).toEqual([wrong, 400])
    }
  })

  it.each([
    ['/v1/alerts?from=2016-12-31T23:59:60Z', undefined, 'bad-request'],
    ['/v1/alerts?to=2016-12-31T23:59:60Z', undefined, 'bad-request'],
    ['POST /v1/deliveries/redeliver', { from: '2016-12-31T23:59:60Z' }, 'bad-request'],
    ['/v1/alerts?after=x', undefined, 'cursor-invalid'],
    ['/v1/alerts?after=%2B275760-01-01T00:00:00Z%20x', undefined, 'cursor-invalid'],
  ])('are not asked for at a time that does not exist, nor after what is no alert: %s', async (path, body, code) => {
    const answer = await openConsole().ask(path, body === undefined ? {} : { body })
    expect([answer.statusCode, answer.json().type]).toEqual([400, `urn:weir:problem:${code}`])
  })

  it('are delivered again to the endpoints they were sent to, or to the one that is asked for', async () => {
    const { ask, requested } = await openWithPolicy()
    const request = `POST /v1/alerts/${knownAlert}/redeliver`
    expect([(await ask(request)).statusCode, (await ask(request, { body: { endpoint: 'ops' } })).json()]).toEqual([
      202,
      { requested: 1 },
    ])
    expect(requested).toMatchObject([
      { alert_id: knownAlert, endpoint: 'ops', outcome: 'requested', attempt: 0, at: '2026-11-21 12:00:00.000' },
      { endpoint: 'ops' },
    ])
    expect((await ask(request, { body: { endpoint: 'opps' } })).statusCode).toBe(404)
    expect((await ask('POST /v1/deliveries/redeliver', { body: { from: '2026-11-20T00:00:00Z' } })).json()).toEqual({
      requested: 1,
    })
    expect((await ask('POST /v1/deliveries/redeliver', { body: {} })).statusCode).toBe(400)
  })

  it('can be tried out at an endpoint of the policy', async () => {
    const { ask, tested } = await openWithPolicy()
    expect((await ask('POST /v1/endpoints/ops/test')).json()).toEqual({ id: knownAlert })
    expect((await ask('POST /v1/endpoints/opps/test')).statusCode).toBe(404)
    expect(tested).toEqual(['ops'])
  })

  it('have a secret made by Weir at an endpoint that names none, shown to an admin', async () => {
    const { ask } = await openWithPolicy({ unsubscribeKey: () => 'k'.repeat(32) })
    const hook = { url: 'https://hooks.example.com/' }
    for (const name of ['hook', 'other']) {
      expect((await ask(`PUT /v1/endpoints/${name}`, { body: hook })).statusCode).toBe(201)
    }
    const secretOf = async (name: string) => (await ask(`/v1/endpoints/${name}/secret`)).json().secret
    const secret = await secretOf('hook')
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(await secretOf('hook')).toBe(secret)
    expect(await secretOf('other')).not.toBe(secret)
    for (const name of ['ops', 'nobody']) expect((await ask(`/v1/endpoints/${name}/secret`)).statusCode).toBe(404)
  })

  it('can be tried out at the contact of a subject, and are delivered again to its addresses', async () => {
    const { ask, tested, requested } = await openWithPolicy()
    const contact = { email: ['one@acme.example', 'two@acme.example'] }
    expect((await ask('PUT /v1/endpoints/customers', { body: { type: 'subject' } })).statusCode).toBe(201)
    const test = (body: object) => ask('POST /v1/endpoints/customers/test', { body })
    expect((await test({ subject: 'acme' })).json().detail).toContain('acme has no contact')
    const { body } = await ask('/v1/subjects/acme')
    expect((await ask('PUT /v1/subjects/acme', { body: { ...JSON.parse(body), contact } })).statusCode).toBe(200)
    expect((await test({ subject: 'acme' })).statusCode).toBe(202)
    expect((await test({})).json().detail).toContain('set `subject`')
    expect((await ask('POST /v1/endpoints/ops/test', { body: { subject: 'acme' } })).statusCode).toBe(400)
    expect(tested).toEqual(['customers acme'])
    const again = { body: { endpoint: 'customers' } }
    expect((await ask(`POST /v1/alerts/${knownAlert}/redeliver`, again)).json()).toEqual({ requested: 2 })
    const names = requested.map(({ endpoint }) => endpoint)
    expect(names).toEqual([
      expect.stringMatching(/^customers\/email-[0-9a-f]{12}$/),
      expect.stringMatching(/^customers\/email-[0-9a-f]{12}$/),
    ])
    const one = { body: { endpoint: names[1] ?? '' } }
    expect((await ask(`POST /v1/alerts/${knownAlert}/redeliver`, one)).json()).toEqual({ requested: 1 })
    expect(requested.at(-1)?.endpoint).toBe(names[1])
  })

  it('are unavailable while ClickHouse or Kafka is, and the answer does not show what the server said', async () => {
    const { ask } = await openWithPolicy(awayPorts)
    for (const request of ['/v1/alerts', `/v1/alerts/${knownAlert}`, 'POST /v1/endpoints/ops/test']) {
      const answer = await ask(request)
      expect([answer.statusCode, answer.headers['retry-after'], answer.body.includes('password')]).toEqual([
        503,
        '5',
        false,
      ])
    }
  })
})
