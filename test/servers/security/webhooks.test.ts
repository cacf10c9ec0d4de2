import { type AddressInfo, createServer } from 'node:net'
import { createAlertSender } from '@weir/alerting/deliver/send-alert.ts'
import type { AlertOf } from '@weir/contracts/alert.v1.ts'
import { systemClock } from '@weir/core/clock.ts'
import { createOutgoing } from '@weir/runtime/outgoing/outgoing.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'

countAttempts('Webhook addresses without allowPrivate', 'no connection is opened, and no secret is in the error')

let opened = 0
const server = createServer((socket) => {
  opened += 1
  socket.destroy()
})
const outgoing = createOutgoing()
beforeAll(() => new Promise<void>((done) => server.listen(0, '::', done)))
afterAll(async () => {
  await outgoing.close()
  await new Promise((done) => server.close(done))
})

const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
const own = { signingSecrets: () => [secret], slackUrl: () => undefined }
const kept = {
  name: 'ops',
  only: {},
  isPaused: false,
  type: 'webhook',
  secretEnv: 'SECRET',
  allowPrivate: false,
} as const
const alert: AlertOf<'weir.quota.reached'> = {
  ...{ id: '2ed6657d-e927-568b-95e1-2665a8aea6a2', type: 'weir.quota.reached', subject: 'acme' },
  time: '2026-01-02T03:04:05.006Z',
  data: {
    ...{ limit: 'day', size: 5_000, used: 4_000, percent: 80, decision_id: '019b7b5e-0000-7000-8000-000000000000' },
    ...{ period_start: '2026-01-02T00:00:00.000Z', period_end: '2026-01-03T00:00:00.000Z' },
  },
}

test.each([
  ...[
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '127.255.255.254',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
  ],
  ...['0', '0.0.0.0', 'localhost', 'localhost.', 'LOCALHOST', 'a.localhost', '[::1]', '[::]', '[0:0:0:0:0:0:0:1]'],
  ...[
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[fe80::1]',
    '[fd00::1]',
  ],
  ...[
    '169.254.169.254',
    '[fd00:ec2::254]',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.0.1',
    '100.64.0.1',
    '198.18.0.1',
    '224.0.0.1',
  ],
  ...['255.255.255.255', '192.0.0.1', '①②⑦.⓪.⓪.①', '127。0。0。1', '127.0.0.1.', 'user:pass@127.0.0.1', '127.0.0.1%2e'],
])('http://%s is not connected to', async (host) => {
  const { port } = server.address() as AddressInfo
  const sender = createAlertSender({
    outgoing,
    secrets: own,
    clock: systemClock,
    sendEmail: async () => ({ status: 0, answer: '' }),
    templates: { find: () => undefined },
  })
  const before = opened
  const result = await sender({ ...kept, url: `http://${host}:${port}/` }, alert)
  expect([result.status, opened]).toEqual([0, before])
  expect(JSON.stringify(result)).not.toContain(secret)
})
