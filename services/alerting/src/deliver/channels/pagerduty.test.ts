import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import type { Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { channelTools } from '../../testing/channel-tools.ts'
import { openReceiver } from '../../testing/receiver.ts'
import { createAlertSender, findProblem } from './channels.ts'

const endpoint: EndpointOf<'pagerduty'> = {
  name: 'duty',
  type: 'pagerduty',
  secretEnv: 'DUTY_KEY',
  url: 'https://events.eu.pagerduty.com/v2/enqueue',
  severity: 'error',
  only: {},
  isPaused: false,
}
const alert: AlertOf<'weir.quota.reached'> = {
  id: '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  type: 'weir.quota.reached',
  subject: 'acme',
  time: '2026-01-02T03:04:05.006Z',
  data: {
    limit: 'day',
    size: 5_000,
    used: 4_000,
    percent: 80,
    decision_id: '019b7b5e-0000-7000-8000-000000000000',
    period_start: '2026-01-02T00:00:00.000Z',
    period_end: '2026-01-03T00:00:00.000Z',
  },
}
const key = 'R0123456789abcdef0123456789ABCDE'

/** A sender whose requests to PagerDuty reach a local server. */
async function open(status: number, headers = {}, answer = '{"status":"success"}') {
  const receiver = await openReceiver((response) => response.writeHead(status, headers).end(answer))
  onTestFinished(receiver.close)
  const asked: string[] = []
  const outgoing: Outgoing = {
    ...receiver.outgoing,
    send(request) {
      asked.push(`${request.url} ${request.allowPrivate}`)
      return receiver.outgoing.send({ ...request, url: receiver.url, allowPrivate: true })
    },
  }
  const tools = channelTools({ DUTY_KEY: key }, { outgoing, consoleUrl: new URL('https://weir.example.com') })
  return { send: createAlertSender(tools), received: receiver.received, asked }
}

/** Checks an event by the rules of the Events API v2, and returns it. */
function readEvent(body: string) {
  const event = JSON.parse(body)
  expect(event).toMatchObject({ routing_key: expect.stringMatching(/^\w{32}$/), event_action: 'trigger' })
  expect(event.dedup_key.length).toBeLessThanOrEqual(255)
  const { summary, source, severity, timestamp, custom_details } = event.payload
  expect(summary.length > 0 && summary.length <= 1_024).toBe(true)
  expect([typeof source, typeof custom_details]).toEqual(['string', 'object'])
  expect(['critical', 'error', 'warning', 'info']).toContain(severity)
  expect(Number.isNaN(Date.parse(timestamp))).toBe(false)
  expect(Buffer.byteLength(body)).toBeLessThan(512 * 1_024)
  return event
}

describe('sending to PagerDuty', () => {
  it('posts an event to the region of the endpoint, and to public addresses alone', async () => {
    const { send, received, asked } = await open(202)
    expect(await send(endpoint, alert)).toEqual({ status: 202, answer: '{"status":"success"}' })
    expect(asked).toEqual(['https://events.eu.pagerduty.com/v2/enqueue false'])
    expect(received[0]?.headers['content-type']).toBe('application/json')
    expect(readEvent(received[0]?.body ?? '')).toEqual({
      routing_key: key,
      event_action: 'trigger',
      dedup_key: alert.id,
      client: 'Weir',
      client_url: `https://weir.example.com/alerts/${alert.id}`,
      payload: {
        summary: 'acme has used 80% of its limit day',
        source: 'acme',
        severity: 'error',
        timestamp: alert.time,
        component: 'day',
        class: 'weir.quota.reached',
        custom_details: { ...alert.data, description: expect.stringContaining('Used: 4,000 of 5,000') },
      },
    })
  })

  it('sends the same key again for the same alert, so that both are one incident', async () => {
    const { send, received } = await open(202)
    await send(endpoint, alert)
    await send(endpoint, { ...alert, traceparent: 'another' })
    const [first, second] = received.map(({ body }) => readEvent(body).dedup_key)
    expect([first, second]).toEqual([alert.id, alert.id])
  })

  it('resolves the incident of the alert that is over', async () => {
    const { send, received } = await open(202)
    const data = { ...alert.data, resolves: alert.id, reached_at: alert.time, reason: 'period_ended' }
    const id = '01a1fdfa-6d10-4540-81b4-576e9d55a36f'
    await send(endpoint, { ...alert, id, type: 'weir.quota.resolved', data })
    expect(JSON.parse(received[0]?.body ?? '')).toEqual({
      routing_key: key,
      event_action: 'resolve',
      dedup_key: alert.id,
    })
  })

  it('shortens a summary that is longer than PagerDuty accepts', async () => {
    const { send, received } = await open(202)
    await send(endpoint, { ...alert, subject: 'x'.repeat(2_000) })
    expect(readEvent(received[0]?.body ?? '').payload.summary).toHaveLength(1_024)
  })

  it('gives an event up that PagerDuty calls malformed, and tries again after any other failure', async () => {
    const malformed = await open(400, {}, '{"status":"invalid event"}')
    expect(await malformed.send(endpoint, alert)).toMatchObject({ status: 400, verdict: 'final' })
    const busy = await open(429, { 'retry-after': '120' })
    expect(await busy.send(endpoint, alert)).toMatchObject({ status: 429, retryAfterMs: 120_000, verdict: undefined })
    const broken = await open(503)
    expect(await broken.send(endpoint, alert)).toMatchObject({ error: 'answered 503', verdict: undefined })
  })

  it.each(['', 'short', `${key}x`, `${key.slice(1)}\n`])(
    'sends nothing with %j for a key, and never says it',
    async (wrong) => {
      const tools = channelTools({ DUTY_KEY: wrong })
      const result = await createAlertSender(tools)(endpoint, alert)
      expect(result).toEqual({ status: 0, error: 'DUTY_KEY does not contain an integration key', answer: '' })
      expect(findProblem(endpoint, tools.environment)).toBe(
        'DUTY_KEY (endpoint duty) must contain the integration key of 32 letters and digits; set it and start again',
      )
    },
  )
})
