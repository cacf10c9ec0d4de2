import { type Entity, type EntityKind, type PolicyFault, sectionOf } from '../entities.ts'
import type { Policy } from '../policy.ts'
import { readValues } from '../reader/parse-policy.ts'
import { pathBelow } from '../reader/policy-reader.ts'
import { textLengthMax } from '../reader/text-reader.ts'
import type { PolicyValue } from '../reader/value-reader.ts'

/** Everything but subjects and keys, in the order in which one may refer to the other. */
const definitionKinds = ['limit', 'plan', 'upstream', 'route', 'endpoint', 'watch', 'identity', 'token'] as const
export type DefinitionKind = (typeof definitionKinds)[number]

export const isDefinitionKind = (kind: EntityKind): kind is DefinitionKind => kind !== 'subject' && kind !== 'key'

/** Definitions by kind and name. */
export type Definitions = Readonly<Record<DefinitionKind, ReadonlyMap<string, Entity>>>

export const noDefinitions: Definitions = {
  limit: new Map(),
  plan: new Map(),
  upstream: new Map(),
  route: new Map(),
  endpoint: new Map(),
  watch: new Map(),
  identity: new Map(),
  token: new Map(),
}

/** By position, then those that have none by name. */
export function inOrder(entities: Iterable<Entity>): readonly Entity[] {
  const place = ({ position }: Entity) => position ?? Number.POSITIVE_INFINITY
  return [...entities].sort((a, b) => {
    const [first, second] = [place(a), place(b)]
    return first === second ? (a.name < b.name ? -1 : 1) : first - second
  })
}

export type CompiledDefinitions =
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

/** What the values of definitions do not show. */
function faultsOfEntities(definitions: Definitions): readonly PolicyFault[] {
  const faults: PolicyFault[] = []
  if ([...definitions.identity.keys()].some((name) => name !== 'identity')) {
    faults.push({ path: sectionOf.identity, message: 'there is one, and its name is identity' })
  }
  for (const { name, body } of definitions.route.values()) {
    const path = pathBelow(sectionOf.route, name)
    if (Object.hasOwn(body, 'match')) {
      faults.push({ path: `${path}.match`, message: `is written twice, first at ${path}` })
    }
  }
  let length = 0
  for (const kind of definitionKinds) for (const entity of definitions[kind].values()) length += textLengthOf(entity)
  if (length > textLengthMax) {
    faults.push({ path: '', message: `is ${length} characters long; a policy has at most ${textLengthMax}` })
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
