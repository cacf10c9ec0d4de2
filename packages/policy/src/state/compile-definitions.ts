import { type Entity, type EntityKind, type PolicyFault, sectionOf } from '../entities.ts'
import type { Policy } from '../policy.ts'
import { parseEdited, readEdited, wordProblems } from '../reader/parse-policy.ts'
import { pathOf } from '../reader/policy-reader.ts'
import { textLengthMax } from '../reader/text-reader.ts'
import type { PolicyValue } from '../reader/value-reader.ts'

/** Everything but subjects and keys, in the order in which one may refer to the other. */
const definitionKinds = ['limit', 'plan', 'upstream', 'route', 'endpoint', 'watch', 'identity', 'token'] as const
export type DefinitionKind = (typeof definitionKinds)[number]

export const isDefinitionKind = (kind: EntityKind): kind is DefinitionKind => kind !== 'subject' && kind !== 'key'

/** Definitions by kind and name. */
export type Definitions = Readonly<Record<DefinitionKind, ReadonlyMap<string, Entity>>>

export const noDefinitions: Definitions = {
  ...{ limit: new Map(), plan: new Map(), upstream: new Map(), route: new Map() },
  ...{ endpoint: new Map(), watch: new Map(), identity: new Map(), token: new Map() },
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
 * Reads definitions as if they stood in weir.yaml, so that every rule is the file's rule. As values they are read a hundred
 * times as fast, and read again by a reader that words it when something is wrong; only what values cannot show is written out as text. `edited` are the kinds
 * that are not as they were in `before`.
 */
export function compileDefinitions(
  definitions: Definitions,
  before: Policy,
  edited: ReadonlySet<DefinitionKind> = new Set(definitionKinds),
): CompiledDefinitions {
  const misnamed = [...definitions.identity.keys()].find((name) => name !== 'identity')
  if (misnamed !== undefined) {
    return {
      kind: 'problems',
      problems: [{ path: sectionOf.identity, message: 'there is one, and its name is identity' }],
    }
  }
  const isKept = (kind: DefinitionKind) => (kind === 'upstream' || kind === 'route') && !edited.has(kind)
  const value = valuesOf(definitions, isKept)
  const kept = { upstreams: isKept('upstream'), routes: isKept('route') }
  const policy = value === undefined ? undefined : readEdited(value, before, kept)
  if (policy !== undefined) return { kind: 'compiled', policy }
  const whole = value === undefined ? undefined : valuesOf(definitions, () => false)
  return whole === undefined ? compileText(definitions, before) : problemsOf(whole, definitions, before)
}

function problemsOf(value: PolicyValue, definitions: Definitions, before: Policy): CompiledDefinitions {
  const { problems, entities } = wordProblems(value, before)
  const ofRoutes = inOrder(definitions.route.values()).map(({ name }) => labelOf('route', name))
  const labels = entities.map((path) => routePath(path, ofRoutes))
  return { kind: 'problems', problems: problems.map((problem) => faultOf(problem, labels, ofRoutes)) }
}

/** Of kinds that are not kept. Undefined for what only a text shows to be wrong: `match` in a body, and too great a length. */
function valuesOf(definitions: Definitions, isKept: (kind: DefinitionKind) => boolean): PolicyValue | undefined {
  const value = new Map<string, PolicyValue>([['version', 1]])
  let textLength = 0
  for (const kind of definitionKinds) {
    for (const entity of definitions[kind].values()) textLength += textLengthOf(entity)
    const entities = isKept(kind) ? [] : inOrder(definitions[kind].values())
    const [first] = entities
    if (first === undefined) continue
    if (kind === 'identity') value.set(sectionOf[kind], first.body)
    else if (kind !== 'route') value.set(sectionOf[kind], new Map(entities.map(({ name, body }) => [name, body])))
    else if (entities.some(({ body }) => Object.hasOwn(body, 'match'))) return undefined
    else
      value.set(
        sectionOf[kind],
        entities.map(({ name, body }) => ({ match: name, ...body })),
      )
  }
  return textLength > textLengthMax - punctuationLengthMax ? undefined : value
}

/** Of the text beside its entities: names of sections and brackets. Near the bound the text itself is measured. */
const punctuationLengthMax = 1_000

/** By the entity, and forgotten with it: nearly all are the ones of the change before. */
const textLengths = new WeakMap<Entity, number>()

function textLengthOf(entity: Entity): number {
  const length = textLengths.get(entity) ?? textOf(entity).length + ',\n'.length
  textLengths.set(entity, length)
  return length
}

/** Each definition stands on a line of its own. */
function compileText(definitions: Definitions, before: Policy): CompiledDefinitions {
  const lines = ['"version":1']
  /** What stands on each line of the text, for messages. */
  const labels: string[] = ['', '']
  const ofRoutes = inOrder(definitions.route.values()).map(({ name }) => labelOf('route', name))
  for (const kind of definitionKinds) {
    const entities = inOrder(definitions[kind].values())
    if (entities.length === 0) continue
    const [open, close] = kind === 'route' ? ['[', ']'] : kind === 'identity' ? ['', ''] : ['{', '}']
    const texts = entities.map((entity) => textOf(entity))
    lines.push(`,${JSON.stringify(sectionOf[kind])}:${open}${texts.join(',\n')}${close}`)
    labels.push(...entities.map(({ name }) => labelOf(kind, name)))
  }
  const parsed = parseEdited(`{${lines.join('\n')}}`, '', before)
  if (parsed.kind === 'policy') return { kind: 'compiled', policy: parsed.policy }
  return { kind: 'problems', problems: parsed.problems.map((problem) => faultOf(problem, labels, ofRoutes)) }
}

function textOf({ kind, name, body }: Entity): string {
  const text = JSON.stringify(body)
  if (kind === 'identity') return text
  // A `match` in the body would be there twice, which is refused.
  if (kind === 'route') return `{"match":${JSON.stringify(name)}${text === '{}' ? '' : ','}${text.slice(1)}`
  return `${JSON.stringify(name)}:${text}`
}

const routePath = (path: string, routes: readonly string[]) =>
  path.replace(/^routes\[(\d+)\]/, (all, at: string) => routes[Number(at)] ?? all)

const labelOf = (kind: DefinitionKind, name: string) => pathOf(sectionOf[kind], name)

/** Names instead of line numbers: there are no lines that anybody could look at. */
function faultOf({ path, message }: PolicyFault, labels: readonly string[], routes: readonly string[]): PolicyFault {
  const label = (line: string) => labels[Number(line)] ?? 'another'
  return {
    path: routePath(path, routes),
    message: message.replace(/ \(line \d+\)/, '').replace(/\bon line (\d+)/g, (_, line: string) => `at ${label(line)}`),
  }
}
