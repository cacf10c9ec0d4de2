import { expect, test } from 'vitest'
import { openAlertingStack } from '../../support/alerting/open-alerting.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'

const quota = { algorithm: 'fixed_window', size: 1_000, thresholds: ['80%', '100%'] }
let chatUrl = ''
const stack = await forFile(
  openAlertingStack(['ops'], (url) => {
    chatUrl = url('/chat')
    const listed = { only: { types: ['weir.quota.reached'] }, allowPrivate: true }
    return {
      plans: { free: { limits: ['day', 'minute'] } },
      limits: { day: { ...quota, period: 'day' }, minute: { ...quota, period: 'minute' } },
      endpoints: {
        listed: { url: url('/listed'), secretEnv: 'OPS_SECRET', ...listed },
        chat: { type: 'slack', urlEnv: 'CHAT_URL', ...listed },
      },
    }
  }),
)

/** What came to a path, whole. */
const received = (path: string) => stack.received.filter((one) => one.path === path).map(({ body }) => JSON.parse(body))
/** What came to the webhook, with its id. */
const ofType = (wanted: string) =>
  stack.received.flatMap(({ path, headers, body }) => {
    const { type, data } = JSON.parse(body)
    return path === '/ops' && type === wanted ? [{ id: String(headers['webhook-id']), data }] : []
  })

test('Two processes, of which one dies: when the minute is over, each alert of it is resolved once, and no other', async () => {
  const environment = { CHAT_URL: chatUrl }
  const [one] = await Promise.all([stack.start(environment), stack.start(environment)])
  await stack.decide(['acme', 'bolt'], 1_000, { limit: 'minute' })
  await stack.decide(['acme'], 800)
  await until(() => ofType('weir.quota.reached').length === 3)
  await one?.kill('SIGKILL')
  await until(() => ofType('weir.quota.resolved').length >= 2, 200_000)
  const reached = ofType('weir.quota.reached').filter(({ data }) => data.limit === 'minute')
  const resolved = ofType('weir.quota.resolved')
  expect(resolved.map(({ data }) => data.resolves).sort()).toEqual(reached.map(({ id }) => id).sort())
  expect(resolved).toMatchObject([{ data: { reason: 'period_ended' } }, { data: { reason: 'period_ended' } }])
  await until(() => received('/chat').length === 5)
  expect(
    received('/chat')
      .map(({ text }) => text)
      .sort(),
  ).toEqual([
    'Resolved: acme has used 100% of its limit minute',
    'Resolved: bolt has used 100% of its limit minute',
    'acme has used 100% of its limit minute',
    'acme has used 80% of its limit day',
    'bolt has used 100% of its limit minute',
  ])
  expect(received('/listed').map(({ type }) => type)).toEqual(Array(3).fill('weir.quota.reached'))
  const rows = await stack.rows<{ incident: string; types: string[] }>(
    `SELECT toString(incident) AS incident, arraySort(groupArray(type)) AS types FROM weir.alerts FINAL
      WHERE limit = 'minute' GROUP BY incident`,
  )
  expect(rows.map(({ types }) => types)).toEqual(Array(2).fill(['weir.quota.reached', 'weir.quota.resolved']))
}, 300_000)
