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
/** The alerts of a type that came to the webhook, by id: a process that dies may have sent one already. */
const byId = (wanted: string) =>
  new Map(
    stack.received.flatMap(({ path, headers, body }) => {
      const { type, data } = JSON.parse(body)
      return path === '/ops' && type === wanted ? [[String(headers['webhook-id']), data] as const] : []
    }),
  )

test('Two processes, of which one dies: when the minute is over, each alert of it is resolved once, and no other', async () => {
  const environment = { CHAT_URL: chatUrl }
  const [one] = await Promise.all([stack.start(environment), stack.start(environment)])
  await stack.decide(['acme', 'bolt'], 1_000, { limit: 'minute' })
  await stack.decide(['acme'], 800)
  await until(() => byId('weir.quota.reached').size === 3)
  await one?.kill('SIGKILL')
  await until(() => byId('weir.quota.resolved').size >= 2, 200_000)
  const reached = [...byId('weir.quota.reached')].flatMap(([id, { limit }]) => (limit === 'minute' ? [id] : []))
  const resolved = [...byId('weir.quota.resolved').values()]
  expect(resolved.map(({ resolves }) => resolves).sort()).toEqual(reached.sort())
  expect(resolved).toMatchObject([{ reason: 'period_ended' }, { reason: 'period_ended' }])
  const titles = () => [...new Set(received('/chat').map(({ text }) => text))].sort()
  await until(() => titles().length === 5)
  expect(titles()).toEqual([
    'Resolved: acme has used 100% of its limit minute',
    'Resolved: bolt has used 100% of its limit minute',
    'acme has used 100% of its limit minute',
    'acme has used 80% of its limit day',
    'bolt has used 100% of its limit minute',
  ])
  expect(new Set(received('/listed').map(({ type }) => type))).toEqual(new Set(['weir.quota.reached']))
  // The table follows within seconds.
  const incidents = () =>
    stack.rows<{ types: string[] }>(
      "SELECT groupArray(type) AS types FROM weir.alerts FINAL WHERE limit = 'minute' GROUP BY incident",
    )
  await until(async () => (await incidents()).flatMap(({ types }) => types).length === 4)
  const wanted = ['weir.quota.reached', 'weir.quota.resolved']
  expect((await incidents()).map(({ types }) => types.sort())).toEqual([wanted, wanted])
}, 300_000)
