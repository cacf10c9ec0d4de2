import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import type { EndpointOf } from '@weir/policy/policy.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { channelTools } from '../../testing/channel-tools.ts'
import { openReceiver } from '../../testing/receiver.ts'
import { createAlertSender, findProblem } from './channels.ts'

const endpoint: EndpointOf<'teams'> = {
  name: 'team',
  type: 'teams',
  urlEnv: 'TEAM_URL',
  allowPrivate: true,
  only: {},
  isPaused: false,
}
const alert: AlertOf<'weir.limit.blocked'> = {
  id: '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  type: 'weir.limit.blocked',
  subject: 'acme',
  time: '2026-11-21T12:00:00Z',
  data: { limit: 'minute', size: 1_000, until: '2026-11-21T13:00:00Z', decision_id: 'd' },
}
const signature = 'sig=c2VjcmV0LW9mLXRoZS13b3JrZmxvdw'

async function open(status: number, headers = {}) {
  const { url, received, outgoing, close } = await openReceiver((response) => response.writeHead(status, headers).end())
  onTestFinished(close)
  const environment = { TEAM_URL: `${url}workflows/1/triggers/manual/paths/invoke?api-version=1&${signature}` }
  const tools = channelTools(environment, { outgoing, consoleUrl: new URL('https://weir.example.com') })
  return { send: createAlertSender(tools), received }
}

/** Reads a message as the workflow does: one adaptive card, of elements that Teams shows. Returns its texts. */
function readCard(body: string) {
  // Teams shows messages of 28 KB.
  expect(Buffer.byteLength(body)).toBeLessThan(28_000)
  const { type, attachments } = JSON.parse(body)
  expect([type, attachments.length]).toEqual(['message', 1])
  expect(attachments[0]).toMatchObject({ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null })
  const card = attachments[0].content
  // Teams knows versions up to 1.5; text blocks read Markdown, and text runs do not.
  expect(card).toMatchObject({ type: 'AdaptiveCard', version: expect.stringMatching(/^1\.[0-5]$/) })
  const texts = card.body.map((block: { type: string; inlines: readonly { type: string; text: string }[] }) => {
    expect(block).toMatchObject({ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: expect.any(String) }] })
    return block.inlines[0]?.text
  })
  return { texts, actions: card.actions }
}

describe('sending to Microsoft Teams', () => {
  it('posts one card that says what happened, and links to the alert', async () => {
    const { send, received } = await open(202)
    expect(await send(endpoint, alert)).toEqual({ status: 202, answer: '' })
    expect(received[0]?.headers['content-type']).toBe('application/json')
    const { texts, actions } = readCard(received[0]?.body ?? '')
    expect(texts).toEqual([
      'acme is blocked by the limit minute',
      'Until: 21 Nov 2026, 13:00 UTC',
      'Limit size: 1,000',
      'Decision: d',
      `weir.limit.blocked ${alert.id}`,
    ])
    expect(actions).toEqual([
      { type: 'Action.OpenUrl', title: 'Open in Weir', url: `https://weir.example.com/alerts/${alert.id}` },
    ])
  })

  it('makes no mention and no link of the name of a subject', async () => {
    const { send, received } = await open(202)
    await send(endpoint, { ...alert, subject: '<at>all</at>[x](y)**' })
    expect(readCard(received[0]?.body ?? '').texts[0]).toContain('<at>all</at>[x](y)**')
  })

  it('leaves out lines of a message that Teams would not show for its size', async () => {
    const { send, received } = await open(202)
    const title = 'ß'.repeat(300)
    const alerts = Array.from({ length: 200 }, () => ({ id: alert.id, type: alert.type, time: alert.time, title }))
    const data = {
      endpoint: 'customers',
      digest: 'daily',
      period_start: alert.time,
      period_end: alert.time,
      count: 200,
    }
    await send(endpoint, { ...alert, type: 'weir.alerts.digest', data: { ...data, alerts } })
    const { texts } = readCard(received[0]?.body ?? '')
    expect(texts.length).toBeGreaterThan(15)
    expect(texts.at(-2)).toBe(`and ${201 - (texts.length - 3)} more lines`)
  })

  it('waits as long as a busy workflow asks, and gives a deleted one up', async () => {
    const busy = await open(429, { 'retry-after': '17' })
    expect(await busy.send(endpoint, alert)).toMatchObject({ status: 429, retryAfterMs: 17_000, verdict: undefined })
    const gone = await open(410)
    expect(await gone.send(endpoint, alert)).toMatchObject({ status: 410, verdict: 'gone' })
  })

  it('never says the URL, which holds its signature', async () => {
    const url = `https://127.0.0.1:1/workflows/1?${signature}`
    const send = createAlertSender(channelTools({ TEAM_URL: url, BROKEN: `not a url ${signature}` }))
    const results = [
      await send({ ...endpoint, allowPrivate: false }, alert),
      await send(endpoint, alert),
      await send({ ...endpoint, urlEnv: 'BROKEN' }, alert),
    ]
    const problem = findProblem({ ...endpoint, urlEnv: 'BROKEN' }, { BROKEN: `not a url ${signature}` })
    expect(problem).toBe('BROKEN (endpoint team) must contain the URL of an incoming webhook; set it and start again')
    expect(results.map(({ error }) => error)).not.toContain(undefined)
    expect(JSON.stringify(results)).not.toContain('c2VjcmV0')
  })
})
