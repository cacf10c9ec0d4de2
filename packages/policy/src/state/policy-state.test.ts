import { finish } from '@weir/core/steps.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  deleteEntity,
  type Entity,
  type EntityChange,
  type EntityKind,
  entityKinds,
  type JsonObject,
  putEntity,
} from '../entities.ts'
import type { Policy } from '../policy.ts'
import { parsePolicy } from '../reader/parse-policy.ts'
import { diffSteps } from './diff-file.ts'
import { entitiesOf } from './entities-of.ts'
import { PolicyState } from './policy-state.ts'
import { type PolicySource, policyLines } from './policy-text.ts'

const policyText = (source: PolicySource) => [...policyLines(source)].map((line) => `${line}\n`).join('')

const runs = 60
/** Some seconds of work on a machine that does nothing else. */
const timeout = 120_000
const hashes = ['a', 'b', 'c', 'd'].map((digit) => digit.repeat(64))

const entity = (kind: EntityKind, name: string, body: JsonObject, more: Partial<Entity> = {}): Entity => ({
  kind,
  name,
  origin: 'admin',
  position: undefined,
  body,
  ...more,
})

const limitBody = { algorithm: 'fixed_window', size: 5, window: '1m' }
const base = [
  entity('limit', 'l0', limitBody),
  entity('limit', 'l1', { ...limitBody, size: 9 }),
  entity('plan', 'p0', { limits: ['l0'] }),
  entity('plan', 'p1', { limits: ['l0', 'l1'] }),
  entity('upstream', 'u0', { url: 'http://c', hosts: [] }),
  entity('subject', 's0', { plan: 'p0' }),
  entity('key', hashes[0] ?? '', { subject: 's0', id: 'k0' }),
]

function loaded(entities: Iterable<Entity>): PolicyState {
  const state = new PolicyState()
  const answer = state.load(entities)
  if (answer.kind === 'problems') throw new Error(JSON.stringify(answer.problems))
  expect(answer.leftOut).toEqual([])
  return state
}

const allOf = (state: PolicyState) => entityKinds.flatMap((kind) => [...state.list(kind)])

/** All that can be asked of a policy. */
function whole({ subjects, keys, contacts, ...definitions }: Policy): unknown {
  const of = <T>(entries: Iterable<readonly [string, T]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    ...definitions,
    tokens: of([...definitions.tokens.keys()].map((key) => [key, definitions.tokens.get(key)])),
    subjects: of([...subjects.keys()].map((id) => [id, subjects.get(id)])),
    contacts: of([...subjects.keys()].map((id) => [id, contacts.get(id)])),
    keys: of([...keys.keys()].map((sha256) => [sha256, keys.get(sha256)])),
  }
}

/** What the state should hold, kept without any cleverness. */
class Model implements PolicySource {
  readonly entities = new Map<string, Entity>()
  get = (kind: EntityKind, name: string) => this.entities.get(`${kind}/${name}`)
  keysOf = (subject: string) =>
    [...this.list('key')].filter(({ body }) => body.subject === subject).map(({ name }) => name)
  list(kind: EntityKind): readonly Entity[] {
    const place = ({ position }: Entity) => position ?? 1e9
    const all = [...this.entities.values()].filter((one) => one.kind === kind)
    return all.sort((a, b) => place(a) - place(b) || (a.name < b.name ? -1 : 1))
  }
  with(changes: readonly EntityChange[]): Model {
    const next = new Model()
    for (const [name, one] of this.entities) next.entities.set(name, one)
    for (const { kind, name, entity: one } of changes) {
      if (one === undefined) next.entities.delete(`${kind}/${name}`)
      else next.entities.set(`${kind}/${name}`, one)
    }
    return next
  }
  /** Whether a file that says the same is right. A file cannot have keys without a subject. */
  get isRight(): boolean {
    const keys = this.list('key')
    const orphans = keys.some(({ body }) => this.get('subject', String(body.subject)) === undefined)
    // A file may have a hash in capitals, the name of an entity may not.
    if (keys.some(({ name }) => name !== name.toLowerCase())) return false
    return !orphans && parsePolicy(policyText(this), 'model').kind === 'policy'
  }
}

const names = (...all: string[]) => fc.constantFrom(...all)
const someLimits = fc.uniqueArray(names('l0', 'l1', 'l2'), { maxLength: 3 })
const somePlan = names('p0', 'p1')
const optional = <T>(name: string, value: fc.Arbitrary<T>) =>
  fc.option(value, { nil: undefined }).map((one) => (one === undefined ? {} : { [name]: one }))
const merged = (...parts: fc.Arbitrary<object>[]) =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all) as JsonObject)

/** Nine times of ten what may be right. */
const mostly = <T>(right: fc.Arbitrary<T>, ...wrong: T[]) =>
  fc.oneof({ weight: 9, arbitrary: right }, { weight: 1, arbitrary: fc.constantFrom(...wrong) })
const atLeastOne = { minLength: 1 }
/** Of an earlier release. */
const someBudget = fc.record({ amount: names('5', '0') })

const bodies: Readonly<Record<EntityKind, readonly [fc.Arbitrary<string>, fc.Arbitrary<JsonObject>]>> = {
  limit: [
    names('l0', 'l1', 'l2'),
    merged(
      fc.record({
        algorithm: fc.constant('fixed_window'),
        size: mostly(fc.integer({ min: 1, max: 3 }), 0),
        window: names('1m', '1h'),
      }),
      optional('applies', names('all', 'plan', 'plan')),
      optional('by', fc.constant(['key'])),
      optional('unit', mostly(names('tokens'), 'usd')),
    ),
  ],
  plan: [
    names('p0', 'p1', 'p2'),
    merged(
      fc.record({ limits: someLimits }),
      optional('prices', mostly(names('m0'), 'm1')),
      optional('budget', someBudget),
      optional('selfService', fc.boolean()),
      optional('ownAlerts', fc.boolean()),
    ),
  ],
  refusal: [names('limit', 'cost', 'other'), fc.record({ status: mostly(fc.integer({ min: 400, max: 599 }), 200) })],
  price: [
    names('m0', 'm1'),
    fc.record({
      currency: mostly(names('EUR', 'JPY'), 'XXX'),
      lines: mostly(
        fc.constant<JsonObject[]>([]),
        [{ name: 'a', routes: ['GET /a'], measure: 'units', tiers: [{ unit_amount: '1' }] }],
        [{ name: 'a', measure: 'units', tiers: [] }],
      ),
    }),
  ],
  rateCard: [
    names('usd', 'eur'),
    fc.record({
      currency: mostly(names('EUR', 'USD'), 'XXX'),
      unknown: names('count', 'refuse'),
      prices: fc.constant([{ model: 'm', from: '2026-09-01T00:00:00Z', prices: { input_tokens: '0.000003' } }]),
    }),
  ],
  meter: [
    names('e0', 'e1'),
    merged(
      optional('preset', mostly(names('openai', 'mcp'), 'gpt')),
      optional('units', fc.constant({ rows: { before: 1 } })),
    ),
  ],
  upstream: [
    names('u0', 'u1'),
    fc.record({ url: mostly(names('http://a'), 'ftp://b'), hosts: mostly(fc.constant<string[]>([]), ['a'], ['*']) }),
  ],
  route: [
    mostly(names('GET /a', 'GET /:x', 'GET /:y'), 'bad'),
    merged(
      optional('limits', someLimits),
      optional('upstream', names('u0', 'u1')),
      optional('cost', names('query:n')),
      optional('meter', names('e0', 'none', 'openai')),
    ),
  ],
  endpoint: [names('e0'), fc.record({ url: names('http://a'), secretEnv: mostly(names('A'), 'b') })],
  watch: [names('w0'), fc.record({ alert: mostly(names('weir.denied_rate.high'), 'weir.quota.reached') })],
  silence: [
    mostly(names('q0', 'q1'), 'a b'),
    merged(
      fc.record({
        by: names('root'),
        from: names('2026-11-21T12:00:00Z'),
        until: mostly(names('2026-11-21T13:00:00Z', '2026-11-22T12:00:00Z'), '2026-12-31T00:00:00Z'),
        subjects: fc.subarray(['s0', 's1'], atLeastOne),
      }),
      optional('types', mostly(fc.constant<string[]>(['weir.quota.reached']), ['weir.quota'])),
    ),
  ],
  block: [
    mostly(names('b0', 'b1'), 'a b'),
    merged(
      fc.record({
        by: names('root'),
        since: names('2026-11-21T12:00:00Z'),
        until: mostly(names('2026-11-21T13:00:00Z'), 'soon'),
        ip: mostly(names('192.0.2.1', '198.51.100.0/24'), '198.51.100.1/24'),
      }),
      optional('exempt', fc.boolean()),
    ),
  ],
  identity: [names('identity'), merged(optional('anonymous', somePlan), optional('unknown', somePlan))],
  token: [
    names('t0', 't1'),
    merged(
      fc.record({ sha256: names(...hashes), scopes: mostly(fc.subarray(['usage', 'read'], atLeastOne), []) }),
      optional('subjects', mostly(fc.subarray(['s0', 's1'], atLeastOne), [])),
    ),
  ],
  portal: [
    mostly(names('s0', 's1'), 'ip:1'),
    fc.record({ notBefore: mostly(names('2026-11-21T12:00:00Z', '2026-11-22T12:00:00Z'), 'never') }),
  ],
  unsubscribed: [
    mostly(names('s0', 's1'), 'ip:1'),
    fc.record({ email: mostly<string[]>(fc.constant(['0123456789ab']), [], ['a@b.example']) }),
  ],
  ownAlerts: [
    mostly(names('s0', 's1'), 'ip:1'),
    merged(
      optional('email', mostly<string[]>(fc.constant(['a@b.example']), ['a'])),
      optional(
        'pending',
        mostly<JsonObject[]>(fc.constant([{ email: 'c@d.example', at: '2026-11-21T12:00:00Z' }]), [{}]),
      ),
      optional('percents', mostly<string[]>(fc.constant(['50%']), ['101%'])),
    ),
  ],
  subject: [
    mostly(names('s0', 's1', 's2'), 'ip:1'),
    merged(
      fc.record({ plan: names('p0', 'p1', 'p2') }),
      optional('parent', mostly<unknown>(names('s0', 's1', 's2'), 's9', 7)),
      optional('timeZone', mostly(names('UTC', 'Asia/Kathmandu'), 'Mars/Base')),
      optional('prices', names('m0', 'm1')),
      optional('budget', someBudget),
      optional('selfService', mostly<unknown>(fc.boolean(), 'yes')),
      optional('ownAlerts', fc.boolean()),
      optional('contact', mostly<JsonObject>(fc.constantFrom({ email: ['a@b'] }, { email: ['a@b', 'c@d'] }), {})),
      optional('anchor', mostly(fc.integer({ min: 1, max: 2 }), 0, 1.5)),
      optional('limits', merged(optional('l0', fc.record({ size: fc.integer({ min: 1, max: 2 }) })))),
    ),
  ],
  key: [
    mostly(names(...hashes), 'A'.repeat(64), 'weir_key'),
    merged(
      fc.record({ subject: names('s0', 's0', 's1'), id: names('k0', 'k1', 'k2') }),
      optional('expires', mostly(names('2027-01-31T00:00:00.000Z'), 'never')),
      optional('limits', mostly(fc.constantFrom<JsonObject>({ l0: { size: 1 } }, { l1: { size: 2 } }), { l9: {} })),
    ),
  ],
}

const someChange: fc.Arbitrary<EntityChange> = names(...Object.keys(bodies)).chain((name) => {
  const kind = name as EntityKind
  const [someName, someBody] = bodies[kind]
  const position = kind === 'subject' || kind === 'key' ? fc.constant(undefined) : fc.constantFrom(undefined, 0, 1.5, 2)
  const put = fc
    .record({ name: someName, body: someBody, origin: fc.constantFrom('file' as const, 'admin' as const), position })
    .map((one) => putEntity({ kind, ...one }))
  return fc.oneof(
    { weight: 4, arbitrary: put },
    { weight: 1, arbitrary: someName.map((one) => deleteEntity(kind, one)) },
  )
})
const someChanges = fc.array(fc.array(someChange, { minLength: 1, maxLength: 4 }), { minLength: 5, maxLength: 15 })

test('a change is accepted exactly if an equal file is, and a check says so beforehand and changes nothing', {
  timeout,
}, () => {
  fc.assert(
    fc.property(someChanges, (all) => {
      const state = loaded(base)
      let model = new Model().with(base.map(putEntity))
      for (const changes of all) {
        const next = model.with(changes)
        const [text, policy] = [policyText(state), whole(state.policy)]
        const checked = finish(state.checkSteps(changes))
        expect(checked.kind === 'fine').toBe(next.isRight)
        expect([policyText(state), whole(state.policy)]).toEqual([text, policy])
        const before = state.policy
        const applied = state.apply(changes)
        expect(applied.kind === 'applied').toBe(next.isRight)
        if (applied.kind === 'problems') {
          expect(applied.problems).not.toHaveLength(0)
          expect([policyText(state), whole(state.policy)]).toEqual([text, policy])
          expect(state.policy).toBe(before)
          continue
        }
        const isOfIdentities = changes.every(({ kind }) => kind === 'subject' || kind === 'key')
        if (isOfIdentities) expect(state.policy).toBe(before)
        model = next
      }
    }),
    { numRuns: runs },
  )
})

test('the state after any changes is the state of the entities that are left, and of its own text', { timeout }, () => {
  fc.assert(
    fc.property(someChanges, fc.nat(), (all, seed) => {
      const state = loaded(base)
      let model = new Model().with(base.map(putEntity))
      for (const changes of all) if (state.apply(changes).kind === 'applied') model = model.with(changes)
      const shuffled = [...model.entities.values()].sort(
        (a, b) => (((a.name + a.kind + seed).length * 7 + seed) % 5) - (((b.name + b.kind).length * 7) % 5),
      )
      const fresh = loaded(shuffled)
      expect(whole(state.policy)).toEqual(whole(fresh.policy))
      expect(policyText(state)).toBe(policyText(fresh))
      expect(state.size).toBe(model.entities.size)
      for (const one of model.entities.values()) expect(state.get(one.kind, one.name)).toEqual(one)
      const text = policyText(state)
      const parsed = parsePolicy(text, 'weir.yaml')
      expect(parsed.kind === 'policy' && whole(parsed.policy)).toEqual(whole(state.policy))
    }),
    { numRuns: runs },
  )
})

test('applying a file gives the file, leaves what the admin API has made, and applied again changes nothing', {
  timeout,
}, () => {
  fc.assert(
    fc.property(someChanges, someChanges, (some, others) => {
      const [from, to] = [new PolicyState(), new PolicyState()]
      for (const changes of some) from.apply(changes)
      const asFile = (changes: EntityChange[]) =>
        changes.map((one) => (one.entity === undefined ? one : putEntity({ ...one.entity, origin: 'file' })))
      for (const changes of others) to.apply(asFile(changes))
      const file = entitiesOf(policyText(to), 'weir.yaml')
      if (file.kind === 'problems') throw new Error(JSON.stringify(file.problems))
      const made = allOf(from).filter(({ origin }) => origin === 'admin')
      const applied = from.apply(finish(diffSteps(from, file.entities)))
      if (applied.kind === 'problems') return
      for (const one of file.entities)
        expect(from.get(one.kind, one.name)).toMatchObject({ origin: 'file', body: one.body })
      const ofFile = allOf(from).filter(({ origin }) => origin === 'file')
      expect(ofFile.map(({ name }) => name).sort()).toEqual(file.entities.map(({ name }) => name).sort())
      const inFile = new Set(file.entities.map(({ kind, name }) => `${kind}/${name}`))
      for (const one of made) {
        if (!inFile.has(`${one.kind}/${one.name}`)) expect(from.get(one.kind, one.name)).toEqual(one)
      }
      expect(finish(diffSteps(from, file.entities))).toEqual([])
    }),
    { numRuns: runs },
  )
})
