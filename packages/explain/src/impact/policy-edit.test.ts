import { finish } from '@weir/core/steps.ts'
import { deleteEntity, type EntityChange, type EntityKind, type JsonObject, putEntity } from '@weir/policy/entities.ts'
import { entitiesOf } from '@weir/policy/state/entities-of.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import { expect, test } from 'vitest'
import { PolicyEdit } from './policy-edit.ts'

const text = `
version: 1
plans: { free: { limits: [minute] }, gold: { limits: [minute, day] } }
limits:
  minute: { algorithm: fixed_window, size: 100, window: 1m }
  day: { algorithm: fixed_window, size: 1000, period: day }
  per-ip: { algorithm: fixed_window, size: 9, window: 1m, by: [ip], applies: all }
  otp: { algorithm: fixed_window, size: 5, window: 1m }
routes: [{ match: POST /otp, limits: [otp] }, { match: GET /a }]
subjects:
  acme: { plan: free }
  bolt: { plan: gold }
  own: { plan: free, limits: { minute: { size: 5 } } }
`
const put = (kind: EntityKind, name: string, body: JsonObject): EntityChange =>
  putEntity({ kind, name, origin: 'file', position: 0, body })

/** The edit of the policy above by these changes. */
function edit(changes: readonly EntityChange[]): PolicyEdit {
  const state = new PolicyState()
  const parsed = entitiesOf(text, 'weir.yaml')
  if (parsed.kind !== 'entities') throw new Error('the policy is not right')
  state.load(parsed.entities)
  const edited = finish(state.previewSteps(changes))
  if (edited.kind === 'problems') throw new Error(JSON.stringify(edited.problems))
  const { policy } = state
  const subjects = changes.filter(({ kind }) => kind === 'subject').map(({ name }) => name)
  return new PolicyEdit({ policy, subjectOf: (id) => policy.subjects.get(id) }, edited, subjects)
}
const names = { plan: 'free', route: 'GET /a' }

test('A request meets the edited limit, and a subject with its own version meets that one as before', () => {
  const minute = edit([put('limit', 'minute', { algorithm: 'fixed_window', size: 50, window: '1m' })])
  expect([...minute.limits]).toEqual([['minute', 'changed']])
  expect(minute.resolve({ subject: 'acme', ...names }).limits).toMatchObject([{ size: 50 }, { name: 'per-ip' }])
  expect(minute.resolve({ subject: 'own', ...names }).limits).toMatchObject([{ size: 5 }, { name: 'per-ip' }])
})

test('Only requests to its route meet the limit of a route', () => {
  const otp = edit([put('limit', 'otp', { algorithm: 'fixed_window', size: 2, window: '1m' })])
  const limitsOf = (route: string) => otp.resolve({ subject: 'acme', plan: 'free', route }).limits
  expect(limitsOf('GET /a')).toMatchObject([{ name: 'minute' }, { name: 'per-ip' }])
  expect(limitsOf('POST /otp')).toContainEqual(expect.objectContaining({ name: 'otp', size: 2 }))
})

test('A subject that moves to another plan meets the limits of that plan', () => {
  const moved = edit([put('subject', 'acme', { plan: 'gold' })])
  expect([...moved.limits]).toEqual([['day', 'applied']])
  expect(moved.resolve({ subject: 'acme', ...names }).limits.map(({ name }) => name)).toEqual([
    'minute',
    'day',
    'per-ip',
  ])
})

test('Plans, routes and own versions that change say which limits they apply otherwise', () => {
  const plan = edit([put('plan', 'free', { limits: ['minute', 'otp'] })])
  expect([...plan.limits]).toEqual([['otp', 'applied']])
  const own = edit([put('subject', 'own', { plan: 'free', limits: { minute: { size: 7 } } })])
  expect([...own.limits]).toEqual([['minute', 'applied']])
  const gone = edit([put('route', 'POST /otp', {}), deleteEntity('limit', 'otp')])
  expect([...gone.limits]).toEqual([['otp', 'removed']])
})

test('A subject that the policy does not list keeps the plan of its record', () => {
  const minute = edit([put('limit', 'minute', { algorithm: 'fixed_window', size: 50, window: '1m' })])
  const limitsOf = (plan: string) =>
    minute.resolve({ subject: 'someone', plan, route: '*' }).limits.map(({ name }) => name)
  expect([limitsOf('gold'), limitsOf('none')]).toEqual([['minute', 'day', 'per-ip'], ['per-ip']])
})
