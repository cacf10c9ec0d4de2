import { presetMeters } from '@weir/meters/meter.ts'
import {
  canonicalJson,
  type Entity,
  type EntityChange,
  type EntityKind,
  entityKinds,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type PolicyFault,
  sectionOf,
} from '../entities.ts'
import type { Policy } from '../policy.ts'
import { readValues } from '../reader/parse-policy.ts'
import { pathBelow } from '../reader/policy-reader.ts'
import { textLengthMax } from '../reader/text-reader.ts'
import type { PolicyValue } from '../reader/value-reader.ts'

/** The kind of a definition, which is everything but subjects and keys. */
export type DefinitionKind = Exclude<EntityKind, 'subject' | 'key'>

/** Returns whether entities of the kind are definitions. */
export const isDefinitionKind = (kind: EntityKind): kind is DefinitionKind => kind !== 'subject' && kind !== 'key'

/** In the order in which one may refer to the other. */
export const definitionKinds = entityKinds.filter(isDefinitionKind)

/** Definitions by kind and name. */
export type Definitions = Readonly<Record<DefinitionKind, ReadonlyMap<string, Entity>>>

/** Returns a map without entries for every kind. */
export const newDefinitions = () =>
  Object.fromEntries(definitionKinds.map((kind) => [kind, new Map()])) as Record<DefinitionKind, Map<string, Entity>>

/** By position, then those that have none by name. */
export function inOrder(entities: Iterable<Entity>): readonly Entity[] {
  const place = ({ position }: Entity) => position ?? Number.POSITIVE_INFINITY
  return [...entities].sort((a, b) => {
    const [first, second] = [place(a), place(b)]
    return first === second ? (a.name < b.name ? -1 : 1) : first - second
  })
}

/** Returns the definitions after the changes, and the kinds whose meaning changes. The others keep their map. */
export function editDefinitions(before: Definitions, changes: Iterable<EntityChange>) {
  const edited = new Set<DefinitionKind>()
  const copies: Partial<Record<DefinitionKind, Map<string, Entity>>> = {}
  for (const { kind, name, entity } of changes) {
    if (!isDefinitionKind(kind)) continue
    const known = before[kind].get(name)
    copies[kind] ??= new Map(before[kind])
    if (entity === undefined) copies[kind].delete(name)
    else copies[kind].set(name, entity)
    if (!meansTheSame(known, entity)) edited.add(kind)
  }
  return { definitions: { ...before, ...copies }, edited }
}

function meansTheSame(before: Entity | undefined, after: Entity | undefined): boolean {
  if (before === undefined || after === undefined) return before === after
  return before.position === after.position && canonicalJson(before.body) === canonicalJson(after.body)
}

/** Definitions that are to go while others still name them. Plans of subjects are looked at elsewhere. */
export function usesOfDeleted(before: Definitions, after: Definitions): readonly PolicyFault[] {
  const faults: PolicyFault[] = []
  const deleted = (
    kind: 'limit' | 'plan' | 'upstream' | 'meter' | 'route' | 'price' | 'rateCard',
    usesOf: (name: string) => readonly string[],
  ) => {
    for (const name of before[kind].keys()) {
      if (after[kind].has(name)) continue
      const uses = usesOf(name).join(' and ')
      if (uses !== '') faults.push({ path: pathBelow(sectionOf[kind], name), message: `is still used by ${uses}` })
    }
  }
  /** `3 plans, such as free`; empty for none. */
  const usersOf = (
    kind: 'plan' | 'route' | 'limit' | 'price',
    uses: (body: JsonObject) => boolean,
  ): readonly string[] => {
    const [user, ...others] = [...after[kind].values()].filter(({ body }) => uses(body))
    if (user === undefined) return []
    const what = kind === 'price' ? 'price list' : kind
    return [others.length === 0 ? `the ${what} ${user.name}` : `${others.length + 1} ${what}s, such as ${user.name}`]
  }
  deleted('limit', (name) => [
    ...usersOf('plan', ({ limits }) => listOf(limits).includes(name)),
    ...usersOf('route', ({ limits }) => listOf(limits).includes(name)),
    ...usersOf('limit', ({ replaces }) => listOf(replaces).includes(name)),
  ])
  deleted('rateCard', (name) => usersOf('limit', ({ unit }) => unit === name))
  deleted('upstream', (name) => usersOf('route', ({ upstream }) => upstream === name))
  deleted('meter', (name) => (presetMeters.has(name) ? [] : usersOf('route', ({ meter }) => meter === name)))
  deleted('route', (name) => usersOf('price', ({ lines }) => listOf(lines).some((line) => namesRoute(line, name))))
  deleted('price', (name) => usersOf('plan', ({ prices }) => prices === name))
  deleted('plan', (name) => [
    ...usersOf('limit', ({ plans }) => listOf(plans).includes(name)),
    ...([...after.identity.values()].some(({ body }) => namesPlan(body, name)) ? ['identity'] : []),
  ])
  return faults
}

const listOf = (value: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(value) ? value : [])

const namesRoute = (line: JsonValue, route: string) => isJsonObject(line) && listOf(line.routes).includes(route)

/** `anonymous`, `unknown`, and the `plan` of an issuer or of trusted headers. */
function namesPlan({ anonymous, unknown, jwt, trustedHeaders }: JsonObject, name: string): boolean {
  const hasPlan = (value: JsonValue | undefined) =>
    JSON.stringify(value ?? null).includes(`"plan":${JSON.stringify(name)}`)
  return anonymous === name || unknown === name || listOf(jwt).some(hasPlan) || hasPlan(trustedHeaders)
}

type CompiledDefinitions =
  /** The policy has no subjects and no keys. */
  | { readonly kind: 'compiled'; readonly policy: Policy }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

/**
 * Reads definitions as if they stood in weir.yaml, so that every rule is the file's rule. `edited` are the kinds that
 * are not as they were in `before`.
 */
export function compileDefinitions(
  definitions: Definitions,
  before: Policy,
  edited: ReadonlySet<DefinitionKind> = new Set(definitionKinds),
): CompiledDefinitions {
  const faults = faultsOfEntities(definitions)
  const isKept = (kind: DefinitionKind) => (kind === 'upstream' || kind === 'route') && !edited.has(kind)
  const kept = { upstreams: isKept('upstream'), routes: isKept('route') }
  const { policy, problems } = readValues(valuesOf(definitions, isKept), before, kept)
  if (policy !== undefined && faults.length === 0) return { kind: 'compiled', policy }
  return { kind: 'problems', problems: [...faults, ...problems] }
}

/** Returns the problems that the values of definitions do not show. */
function faultsOfEntities(definitions: Definitions): readonly PolicyFault[] {
  const faults: PolicyFault[] = []
  if ([...definitions.identity.keys()].some((name) => name !== 'identity')) {
    faults.push({ path: sectionOf.identity, message: 'there is one, and its name is identity' })
  }
  for (const { name, body } of definitions.route.values()) {
    if (!Object.hasOwn(body, 'match')) continue
    const path = pathBelow(sectionOf.route, name)
    faults.push({ path: `${path}.match`, message: `is set twice, first at ${path}` })
  }
  let length = 0
  for (const kind of definitionKinds) for (const entity of definitions[kind].values()) length += textLengthOf(entity)
  if (length > textLengthMax) {
    faults.push({ path: '', message: `is ${length} characters long; a policy can have at most ${textLengthMax}` })
  }
  return faults
}

/** The sections of a policy, without those of kinds that are kept. Problems of routes call them by their names. */
function valuesOf(definitions: Definitions, isKept: (kind: DefinitionKind) => boolean): PolicyValue {
  const value = new Map<string, PolicyValue>([['version', 1]])
  for (const kind of definitionKinds) {
    const entities = isKept(kind) ? [] : inOrder(definitions[kind].values())
    const [first] = entities
    if (first === undefined) continue
    const bodyOf = ({ name, body }: Entity) => (kind === 'route' ? { ...body, match: name } : body)
    value.set(
      sectionOf[kind],
      kind === 'identity' ? first.body : new Map(entities.map((entity) => [entity.name, bodyOf(entity)])),
    )
  }
  return value
}

/** Lengths as JSON by the entity, and forgotten with it: nearly all are the ones of the change before. */
const textLengths = new WeakMap<Entity, number>()

function textLengthOf(entity: Entity): number {
  const length = textLengths.get(entity) ?? JSON.stringify([entity.name, entity.body]).length
  textLengths.set(entity, length)
  return length
}
