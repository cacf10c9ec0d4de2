import { expect, test } from 'vitest'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'

const signature = 'sig=c2VjcmV0LW9mLXRoZS13b3JrZmxvdw'
let teamUrl = ''
const stack = await forFile(
  openAlertingStack([], (url) => {
    teamUrl = url(`/workflow?${signature}`)
    return { endpoints: { team: { type: 'teams', urlEnv: 'TEAM_URL', allowPrivate: true } } }
  }),
)

test('An alert to Teams that fails is tried again as one card, and its URL is in no row and no log', async () => {
  const path = `/workflow?${signature}`
  stack.answer(path, (out) => out.writeHead(502).end())
  const alerting = await stack.start({ TEAM_URL: teamUrl })
  await stack.decide(['acme'], 800)
  await until(() => stack.received.length === 1)
  stack.answer(path, (out) => out.writeHead(202).end())
  const rows = () => stack.rows<{ outcome: string; status: number }>('SELECT * FROM weir.deliveries FINAL ORDER BY at')
  await until(async () => (await rows()).some(({ outcome }) => outcome === 'delivered'))
  expect(stack.received.map(({ body }) => JSON.parse(body).attachments[0].content.type)).toEqual([
    'AdaptiveCard',
    'AdaptiveCard',
  ])
  expect(new Set(stack.received.map(({ body }) => body)).size).toBe(1)
  const kept = await rows()
  expect(kept.map(({ outcome, status }) => [outcome, status])).toContainEqual(['failed', 502])
  expect(JSON.stringify([kept, alerting.said()])).not.toContain('c2VjcmV0')
})
