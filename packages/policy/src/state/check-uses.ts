import { type Entity, type JsonObject, type JsonValue, type PolicyFault, sectionOf } from '../entities.ts'
import { pathBelow } from '../reader/policy-reader.ts'
import type { Definitions } from './compile-definitions.ts'

/** Limits and upstreams that are to go while other definitions still name them, and plans that `identity` names. */
export function usesOfDeleted(before: Definitions, after: Definitions): readonly PolicyFault[] {
  const faults: PolicyFault[] = []
  const gone = (kind: 'limit' | 'plan' | 'upstream', usesOf: (name: string) => string) => {
    for (const name of before[kind].keys()) {
      if (after[kind].has(name)) continue
      const uses = usesOf(name)
      if (uses !== '') faults.push({ path: pathBelow(sectionOf[kind], name), message: `is still used by ${uses}` })
    }
  }
  gone('limit', (name) => {
    const names = (body: JsonObject) => listOf(body.limits).includes(name)
    const replaces = usersOf(after.limit, (body) => listOf(body.replaces).includes(name))
    return [
      told('plan', usersOf(after.plan, names)),
      told('route', usersOf(after.route, names)),
      told('limit', replaces),
    ]
      .filter(Boolean)
      .join(' and ')
  })
  gone('upstream', (name) =>
    told(
      'route',
      usersOf(after.route, (body) => body.upstream === name),
    ),
  )
  gone('plan', (name) => (usersOf(after.identity, (body) => namesPlan(body, name)).length > 0 ? 'identity' : ''))
  return faults
}

const listOf = (value: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(value) ? value : [])

function usersOf(entities: ReadonlyMap<string, Entity>, uses: (body: JsonObject) => boolean): readonly string[] {
  return [...entities.values()].filter(({ body }) => uses(body)).map(({ name }) => name)
}

/** `3 plans, such as free`; empty for none. */
function told(what: string, names: readonly string[]): string {
  const [first] = names
  if (first === undefined) return ''
  return names.length === 1 ? `the ${what} ${first}` : `${names.length} ${what}s, such as ${first}`
}

/** `anonymous`, `unknown`, and the `plan` of an issuer or of trusted headers. */
function namesPlan({ anonymous, unknown, jwt, trustedHeaders }: JsonObject, name: string): boolean {
  const hasPlan = (value: JsonValue | undefined) =>
    JSON.stringify(value ?? null).includes(`"plan":${JSON.stringify(name)}`)
  return anonymous === name || unknown === name || listOf(jwt).some(hasPlan) || hasPlan(trustedHeaders)
}
