import { encodeChange, encodeEntityChange, type PolicyMessage } from '@weir/contracts/policy.v1.ts'
import { deleteEntity, type EntityChange, type EntityKind, type JsonObject, putEntity } from '@weir/policy/entities.ts'
import { expect, test } from 'vitest'
import { TransactionAssembler } from './assemble-transactions.ts'
import { CatchUp } from './catch-up.ts'

const put = (kind: EntityKind, name: string, body: JsonObject) =>
  putEntity({ kind, name, origin: 'file', position: undefined, body })
const limit = (size: number) => put('limit', 'minute', { algorithm: 'fixed_window', size, window: '1m' })
const plan = put('plan', 'free', { limits: ['minute'] })
const subject = (id: string) => put('subject', id, { plan: 'free' })

/** The topic of these changes, gathered from its beginning. */
function catchUpOn(...changes: readonly (readonly EntityChange[])[]) {
  const unreadable: string[] = []
  const assembler = new TransactionAssembler((_, reason) => unreadable.push(reason))
  const catchUp = new CatchUp()
  let offset = -1n
  const add = ({ key, value }: PolicyMessage) => {
    offset += 1n
    const bytes = value === null ? null : Buffer.from(value)
    const whole = assembler.add({ offset, key: Buffer.from(key), value: bytes })
    if (whole !== undefined) catchUp.add(whole)
  }
  for (const [at, entities] of changes.entries()) {
    for (const change of entities) add(encodeEntityChange(change))
    add(encodeChange(`id-${at}`, { atMs: 0, by: 'test', summary: [] }))
  }
  return { ...catchUp.finish(), unreadable }
}

test('A record that compaction moved to the end is known to the records before it', () => {
  const result = catchUpOn([subject('acme')], [subject('globex')], [plan], [limit(5)])
  if (result.kind !== 'caught-up') throw new Error(result.kind)
  expect([...result.state.policy.subjects.keys()]).toEqual(['acme', 'globex'])
  expect(result).toMatchObject({ checkpoint: { offset: 7n, id: 'id-3' }, leftOut: [], tried: [], unreadable: [] })
})

test('the last record of an entity counts, in one change and over many, and a deletion deletes', () => {
  const edits = Array.from({ length: 50 }, (_, at) => [limit(at + 2), limit(at + 1)])
  const result = catchUpOn([limit(1), plan, subject('acme'), subject('gone')], ...edits, [
    deleteEntity('subject', 'gone'),
  ])
  if (result.kind !== 'caught-up') throw new Error(result.kind)
  expect(result.state.policy.limits.get('minute')?.size).toBe(50)
  expect([...result.state.policy.subjects.keys()]).toEqual(['acme'])
})

test('If the end of a topic does not fit, the same is in force as in a process that followed it all the time', () => {
  const edits = Array.from({ length: 50 }, (_, at) => [limit(at + 1)])
  const wrong = [limit(99), deleteEntity('plan', 'free')]
  const result = catchUpOn([limit(1), plan, subject('acme')], ...edits, wrong, [subject('later')])
  if (result.kind !== 'caught-up') throw new Error(result.kind)
  expect(result.state.policy.limits.get('minute')?.size).toBe(50)
  expect([...result.state.policy.subjects.keys()]).toEqual(['acme', 'later'])
  expect(result.tried.filter(({ problems }) => problems.length > 0).map(({ change }) => change.audit.id)).toEqual([
    'id-51',
  ])
  expect(result.checkpoint?.id).toBe('id-52')
})

test('an empty topic is an empty policy without a checkpoint, and one of which nothing fits is unusable', () => {
  expect(catchUpOn()).toMatchObject({ kind: 'caught-up', checkpoint: undefined })
  expect(catchUpOn([plan])).toMatchObject({ kind: 'unusable' })
})

/**
 * The topic of these batches, each with the number of the batch that its writer knew as the last; `gone` are compacted
 * away.
 */
function raceOf(
  batches: readonly { readonly change: EntityChange; readonly after: number }[],
  gone: readonly number[],
) {
  const assembler = new TransactionAssembler((_, reason) => expect.fail(reason))
  const catchUp = new CatchUp()
  const audited: string[] = []
  const feed = (offset: number, { key, value }: PolicyMessage) =>
    assembler.add({ offset: BigInt(offset), key: Buffer.from(key), value: value === null ? null : Buffer.from(value) })
  for (const [at, { change, after }] of batches.entries()) {
    if (gone.includes(at)) continue
    feed(2 * at, encodeEntityChange(change))
    const place = after < 0 ? { offset: '-1', id: '' } : { offset: String(2 * after + 1), id: `id-${after}` }
    const whole = feed(2 * at + 1, encodeChange(`id-${at}`, { atMs: 0, by: 'test', summary: [], after: place }))
    if (whole !== undefined && catchUp.add(whole)) audited.push(whole.audit.id)
  }
  const result = catchUp.finish()
  if (result.kind !== 'caught-up') throw new Error(result.kind)
  return { size: result.state.policy.limits.get('minute')?.size, stale: result.overtaken, audited }
}

test('A change that was planned before another one landed counts nowhere, until its parts are written again', () => {
  const race = [
    { change: limit(1), after: -1 },
    { change: limit(2), after: 0 },
    { change: limit(3), after: 0 },
  ]
  const minute = { kind: 'limit', name: 'minute' }
  expect(raceOf(race, [])).toEqual({ size: 2, stale: [minute], audited: ['id-0', 'id-1'] })
  const restored = [...race, { change: limit(2), after: 2 }]
  expect(raceOf(restored, [])).toEqual({ size: 2, stale: [], audited: ['id-0', 'id-1', 'id-3'] })
  // Compaction takes old records away, and never a change that stands after the ones before it.
  expect(raceOf(restored, [0, 1])).toMatchObject({ size: 2, stale: [] })
  expect(raceOf(restored, [0, 1, 2])).toMatchObject({ size: 2, stale: [] })
})
