import { expect, test } from 'vitest'
import { type Entity, type EntityChange, putEntity } from '../entities.ts'
import { PolicyState } from './policy-state.ts'

const put = (kind: Entity['kind'], name: string, body: Entity['body']) =>
  putEntity({ kind, name, origin: 'admin', position: undefined, body })

test('what an edit takes in a tree depends on how many are above others, not on how many are below', () => {
  const state = new PolicyState()
  const definitions = [put('limit', 'day', { algorithm: 'fixed_window', size: 9, period: 'day' })]
  definitions.push(put('plan', 'company', { limits: [] }), put('plan', 'free', { limits: ['day'] }))
  const members = Array.from({ length: 500 }, (_, at) => put('subject', `m${at}`, { plan: 'free', parent: 'acme' }))
  const companies = ['acme', 'bolt'].map((id) => put('subject', id, { plan: 'company' }))
  expect(state.apply([...definitions, ...companies, ...members]).kind).toBe('applied')
  const stepsOf = (...changes: EntityChange[]) => {
    const steps = state.checkSteps(changes)
    let count = 0
    for (let step = steps.next(); step.done !== true; step = steps.next()) count += 1
    return count
  }
  const edits = [
    put('limit', 'day', { algorithm: 'fixed_window', size: 1, period: 'day' }),
    put('subject', 'acme', { plan: 'company', anchor: 2 }),
    put('subject', 'm7', { plan: 'free', parent: 'bolt' }),
    put('key', '3'.repeat(64), { subject: 'm7' }),
  ]
  for (const edit of edits) expect(stepsOf(edit)).toBeLessThan(10)
})
