import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import { systemClock } from '@weir/core/clock.ts'
import type { SlackEndpoint } from '@weir/policy/policy.ts'
import { createOutgoing, type Outgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createSlackSender } from './send-slack.ts'

let server: Server
let outgoing: Outgoing
let bodies: string[]
beforeEach(async () => {
  bodies = []
  outgoing = createOutgoing()
  server = createServer(async (request, response) => {
    bodies.push(await text(request))
    response.writeHead(200).end('ok')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
})
afterEach(async () => {
  await outgoing.close()
  await new Promise((done) => server.close(done))
})

const endpoint: SlackEndpoint = {
  ...{ name: 'chat', type: 'slack', urlEnv: 'CHAT', allowPrivate: true, only: {}, isPaused: false },
}
const alert: AlertOf<'weir.quota.reached'> = {
  ...{ id: '2ed6657d-e927-568b-95e1-2665a8aea6a2', type: 'weir.quota.reached', subject: '<!channel>&co', time: '' },
  data: {
    ...{ limit: 'day', size: 5_000, used: 4_000, percent: 80, decision_id: 'd' },
    ...{ period_start: '2026-11-21T00:00:00Z', period_end: '2026-11-22T00:00:00Z' },
  },
}
const senderTo = (url: string | undefined) => {
  const secrets = { signingSecrets: () => [], slackUrl: () => url, problems: [], follow: () => undefined }
  return createSlackSender({ outgoing, secrets, clock: systemClock })
}

test('a channel gets blocks, in which no name can mention anybody', async () => {
  const { port } = server.address() as AddressInfo
  expect(await senderTo(`http://127.0.0.1:${port}/`)(endpoint, alert)).toMatchObject({ status: 200, answer: '' })
  const { text: shown, blocks } = JSON.parse(bodies[0] ?? '')
  expect(shown).toBe('&lt;!channel&gt;&amp;co has used 80 % of its limit day')
  expect(blocks.map(({ type }: { type: string }) => type)).toEqual(['header', 'section', 'context'])
  expect(blocks[0].text).toMatchObject({ type: 'plain_text' })
  expect(blocks[1].text.text).toContain('Used: 4,000 of 5,000')
  expect(blocks[1].text.text).not.toMatch(/<!/)
})

test('without a URL nothing is sent, and the attempt says so', async () => {
  expect(await senderTo(undefined)(endpoint, alert)).toEqual({ status: 0, error: 'CHAT holds no URL', answer: '' })
})
