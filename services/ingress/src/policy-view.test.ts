import { type Entity, putEntity } from '@weir/policy/entities.ts'
import { entitiesOf } from '@weir/policy/state/entities-of.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import { expect, test } from 'vitest'
import { createLivePolicy } from './policy-view.ts'

const file = entitiesOf(
  `
version: 1
limits:
  minute: { algorithm: fixed_window, size: 100, window: 1m }
  search: { algorithm: fixed_window, size: 10, window: 1m }
plans: { free: { limits: [minute] } }
upstreams: { api: { url: "http://a" } }
routes: [{ match: "GET /a/:id" }, { match: GET /search, limits: [search] }]
`,
  'weir.yaml',
)

function live() {
  const state = new PolicyState()
  if (file.kind === 'problems' || state.load(file.entities).kind === 'problems') throw new Error('a wrong policy')
  const policy = createLivePolicy(state.policy)
  const put = (kind: Entity['kind'], name: string, body: Entity['body']) => {
    const answer = state.apply([putEntity({ kind, name, origin: 'admin', position: undefined, body })])
    if (answer.kind === 'problems') throw new Error(JSON.stringify(answer.problems))
    policy.replace(answer.policy)
    return policy.view
  }
  return { view: policy.view, put }
}

test('an edited limit leaves what is worked out from routes and upstreams as it was', () => {
  const { view, put } = live()
  const next = put('limit', 'minute', { algorithm: 'fixed_window', size: 9, window: '1m' })
  expect(next.policy.routes).toBe(view.policy.routes)
  expect([next.findRoute, next.resolveUpstream]).toEqual([view.findRoute, view.resolveUpstream])
})

test("an edited limit of a route is the route's, found as before", () => {
  const { view, put } = live()
  const next = put('limit', 'search', { algorithm: 'fixed_window', size: 9, window: '1m' })
  expect(next.findRoute).toBe(view.findRoute)
  expect(next.matchRoute('GET', '/search')?.limits.map(({ size }) => size)).toEqual([9])
  expect(view.matchRoute('GET', '/search')?.limits.map(({ size }) => size)).toEqual([10])
})

test('an edited route or upstream is in force', () => {
  const { put } = live()
  expect(put('route', 'GET /a/:id', { cost: 7 }).matchRoute('GET', '/a/1')?.cost).toBe(7)
  expect(put('route', 'GET /b', { cost: 3 }).matchRoute('GET', '/b')?.cost).toBe(3)
  expect(put('upstream', 'api', { url: 'http://b' }).resolveUpstream('', undefined)?.url).toBe('http://b')
})

test('Refusals look like the errors of the one API that an upstream has, also on routes without a meter', () => {
  const { put } = live()
  put('upstream', 'ai', { url: 'http://ai', hosts: [], metered: true })
  put('route', 'POST /chat', { upstream: 'ai', meter: 'openai' })
  put('route', 'GET /models', { upstream: 'ai', meter: 'none' })
  const view = put('route', 'GET /files', { upstream: 'ai' })
  const presetsOf = ({ matchRoute, presetOf }: typeof view) =>
    ['POST /chat', 'GET /models', 'GET /files', 'GET /search'].map((one) => {
      const [method = '', path = ''] = one.split(' ')
      const route = matchRoute(method, path)
      return route && presetOf('a', route)
    })
  expect(presetsOf(view)).toEqual(['openai', 'openai', 'openai', undefined])
  const mixed = put('route', 'POST /messages', { upstream: 'ai', meter: 'anthropic' })
  expect(presetsOf(mixed)).toEqual(['openai', undefined, undefined, undefined])
})
