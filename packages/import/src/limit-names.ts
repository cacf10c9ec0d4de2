import { parseName } from '@weir/policy/policy-values.ts'
import type { Rule } from './envoy-rules.ts'

interface RuleOfDomain {
  readonly domain: string
  readonly rule: Rule
}

const lengthMax = 64
/** These name policies of their own in the RateLimit fields. */
const reserved = ['unauthenticated', 'unlimited']

/**
 * Names for the limits of rules: the one that the configuration gives, where it is the only one; else domain, keys and
 * values. The same configuration gives the same names.
 */
export function createLimitNames(limited: readonly RuleOfDomain[]): (one: RuleOfDomain) => string {
  const given = Map.groupBy(limited, ({ rule }) => givenName(rule))
  const taken = new Set<string>(reserved)
  const counts = new Map<string, number>()
  const names = new Map<Rule, string>()
  const take = (rule: Rule, name: string) => {
    names.set(rule, name)
    taken.add(name)
    return name
  }
  for (const [name, [one, ...others]] of given) {
    const isGood = parseName(name) !== undefined && !taken.has(name)
    if (isGood && one !== undefined && others.length === 0) take(one.rule, name)
  }
  return ({ domain, rule }) => names.get(rule) ?? take(rule, unusedName(readableName(domain, rule), taken, counts))
}

const givenName = ({ from }: Rule) => from.limit?.name ?? ''

function readableName(domain: string, { steps }: Rule): string {
  const parts = steps.flatMap(({ key, match, text }) =>
    match === 'any' ? [key] : [key, match === 'prefix' ? `${text}_` : text],
  )
  const words = [domain, ...parts].map((part) => part.replaceAll(/[^\w.-]+/g, '-').replaceAll(/^-+|-+$/g, ''))
  const plain = words
    .filter((word) => word !== '')
    .join('.')
    .replace(/^[^A-Za-z0-9]+/, '')
  return plain === '' ? 'limit' : plain.slice(0, lengthMax)
}

/** The next that is free; `counts` remembers where the last search for this name ended. */
function unusedName(name: string, taken: ReadonlySet<string>, counts: Map<string, number>): string {
  for (let count = counts.get(name) ?? 1; ; count += 1) {
    counts.set(name, count)
    const ending = count === 1 ? '' : `-${count}`
    const tried = `${name.slice(0, lengthMax - ending.length)}${ending}`
    if (!taken.has(tried)) return tried
  }
}
