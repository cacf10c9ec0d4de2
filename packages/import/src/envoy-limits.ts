import type { JsonObject } from '@weir/policy/entities.ts'
import { attributesOfKeys, descriptorMethod, descriptorSegment } from '@weir/policy/match/match-descriptor.ts'
import { parseMatch } from '@weir/policy/reader/read-routes.ts'
import { type EnvoyDescriptor, windowOfUnit } from './envoy-config.ts'
import { hasNoLimit, type Rule, type Step } from './envoy-rules.ts'
import { spotName } from './foreign-file.ts'
import type { ImportedPolicy } from './imported-policy.ts'
import { LimitNames } from './limit-names.ts'
import type { Notes } from './notes.ts'

type DomainRule = { readonly domain: string; readonly rule: Rule }

/** A limit of the policy with the name that it has there. */
type Named = DomainRule & { readonly name: string }

/** Like `limitsPerDecisionMax` of scopes in one `by`. */
const scopePartsMax = 8
/** Weir's gRPC server answers longer questions, and longer names, with an error. */
const stepsMax = 16
const nameLengthMax = 128
/** The size of a limit that only replaces others: no caller reaches it. */
const unreachable = { size: 9_000_000_000_000_000, window: '1s' } as const

/** Returns names, limits and routes of all rules; adds a note for each that a policy cannot express. */
export function limitsOfRules(
  domains: readonly { readonly domain: string; readonly rules: readonly Rule[] }[],
  notes: Notes,
): ImportedPolicy {
  const expressible = domains.flatMap(({ domain, rules }) =>
    rules
      .map((rule) => ({ domain, rule, match: matchOf(domain, rule) }))
      .filter((one) => {
        const [what, advice] = obstacleOf(one) ?? []
        if (what !== undefined) notes.lost(one.rule.from, `${what}; it is left out`, advice)
        return what === undefined
      }),
  )
  const nameOf = createLimitNames(expressible.filter(({ rule }) => isLimited(rule)))
  const named = expressible.map((one) => ({ ...one, name: isLimited(one.rule) ? nameOf(one) : undefined }))
  const limited = named.flatMap(({ name, ...one }) => (name === undefined ? [] : { ...one, name }))
  const domainsLimits = new Map([...Map.groupBy(limited, ({ domain }) => domain)].map(([of, all]) => [of, byName(all)]))
  return {
    limits: new Map(
      limited.map((one) => {
        const body = limitBody(one.rule, domainsLimits.get(one.domain) ?? byName([]), notes)
        return [one.name, { origin: originOf(one.rule), body }]
      }),
    ),
    routes: named.map(({ rule, match, name }) => ({
      origin: originOf(rule),
      body: name === undefined ? { match, limits: [] } : { match, limits: [name], ...(rule.isLate && lateBody) },
    })),
  }
}

/** What a response has used by its end counts, whether it fits or not. */
const lateBody = { beyond: 'charge' }

const isLimited = ({ isShadow, from }: Rule) => !isShadow && !hasNoLimit(from)

function originOf({ from, isShadow }: Rule): string {
  if (isShadow) return `${spotName(from)}, which shadows a more general one`
  if (from.limit === undefined) return `${spotName(from)}, without a limit`
  return hasNoLimit(from) ? `${spotName(from)}, unlimited` : spotName(from)
}

function matchOf(domain: string, { steps }: Rule): string {
  const path = steps.map(({ key, match, text }) => `/${descriptorSegment(key)}/${valueSegment(key, match, text)}`)
  return `${descriptorMethod} /${descriptorSegment(domain)}${path.join('')}`
}

function valueSegment(key: string, match: Step['match'], text: string): string {
  const name = key.replaceAll(/\W/g, '_').replace(/^(?=\d)/, '_')
  if (match === 'any') return `:${name.slice(0, 64)}`
  return match === 'prefix' ? `${descriptorSegment(text)}*` : descriptorSegment(text)
}

/** Why there can be no such route, or no limit that counts so, with what to do; undefined if there can. */
function obstacleOf({ domain, match, rule }: DomainRule & { readonly match: string }): readonly string[] | undefined {
  const { steps } = rule
  const apart = isLimited(rule) ? apartBy(steps) : []
  const long = [domain, ...steps.map(({ key }) => key)].find((name) => !isName(name))
  const odd = apart.find((key) => !/^[\x21-\x7e]{1,64}$/.test(key))
  if (steps.length > stepsMax)
    return [
      `it is ${steps.length} descriptors deep, and a question has at most ${stepsMax} entries`,
      'Send fewer entries.',
    ]
  if (long !== undefined)
    return [`${JSON.stringify(long)} has more than ${nameLengthMax} characters or a control character`, 'Rename it.']
  if (parseMatch(match) === undefined)
    return [`${match}: no route can match this`, 'Shorten the texts: a route has at most 1,024 characters.']
  if (odd !== undefined)
    return [
      `the key ${JSON.stringify(odd)} cannot be used in \`by\``,
      'Give it 1 to 64 ASCII characters without spaces.',
    ]
  if (apart.length > scopePartsMax)
    return [`counts ${apart.length} keys apart, of at most ${scopePartsMax}`, 'Write values for some of the keys.']
  return undefined
}

const isName = (text: string) => text.length <= nameLengthMax && /^\P{Cc}*$/u.test(text)

/** The attributes whose values are counted apart. */
function apartBy(steps: readonly Step[]): readonly string[] {
  const names = attributesOfKeys(steps.map(({ key }) => key))
  return names.filter((_, at) => steps[at]?.hasOverrides === true)
}

function limitBody({ from, steps }: Rule, others: LimitsByName, notes: Notes): JsonObject {
  const apart = apartBy(steps)
  const per = from.limit?.per
  const replaces = replacedBy(from, others, notes)
  const counted = per === undefined ? unreachable : { size: per.requests, window: windowOfUnit[per.unit] }
  return {
    algorithm: 'fixed_window',
    ...counted,
    by: apart.length === 0 ? ['global'] : apart.map((key) => `attribute:${key}`),
    ...(from.isShadow && per !== undefined ? { mode: 'shadow' } : {}),
    ...(replaces.length === 0 ? {} : { replaces }),
  }
}

/** The limits of a domain, by the names that its configuration gives them. */
interface LimitsByName {
  readonly named: ReadonlyMap<string, readonly Named[]>
  /** The first that says it replaces that name. */
  readonly replacers: ReadonlyMap<string, Named>
}

function byName(limits: readonly Named[]): LimitsByName {
  const replacers = new Map<string, Named>()
  for (const one of limits) {
    for (const name of one.rule.from.limit?.replaces ?? []) if (!replacers.has(name)) replacers.set(name, one)
  }
  return { named: Map.groupBy(limits, ({ rule }) => rule.from.limit?.name ?? ''), replacers }
}

/** The names here of the limits that one replaces. In a policy a limit that is replaced replaces none itself. */
function replacedBy(from: EnvoyDescriptor, { named, replacers }: LimitsByName, notes: Notes): string[] {
  const spot = from.limit ?? from
  const wanted = from.limit?.replaces ?? []
  const replacer = replacers.get(from.limit?.name ?? '')
  if (wanted.length > 0 && from.limit?.name !== '' && replacer !== undefined) {
    const what = `${replacer.name} replaces this limit, so it cannot replace others: both apply, which is stricter`
    notes.changed(spot, what, `If intended, also list ${wanted.join(', ')} in the \`replaces\` of ${replacer.name}.`)
    return []
  }
  return wanted.flatMap((name) => {
    const replaced = (named.get(name) ?? []).map((one) => one.name)
    const what = `no limit of the domain is named ${name}, so nothing is replaced`
    if (replaced.length === 0) notes.info(spot, what, 'Correct the name if you meant another one.')
    return [...new Set(replaced)]
  })
}

/**
 * Names for the limits of rules: the one that the configuration gives, where it is the only one; else domain, keys and
 * values. The same configuration gives the same names.
 */
function createLimitNames(limited: readonly DomainRule[]): (one: DomainRule) => string {
  const taken = new LimitNames()
  const given = new Map<Rule, string>()
  for (const [name, [one, ...others]] of Map.groupBy(limited, ({ rule }) => givenName(rule)))
    if (one !== undefined && others.length === 0 && taken.takeExactly(name)) given.set(one.rule, name)
  return ({ domain, rule }) => given.get(rule) ?? taken.take(readableName(domain, rule))
}

const givenName = ({ from }: Rule) => from.limit?.name ?? ''

function readableName(domain: string, { steps }: Rule): string {
  const parts = steps.flatMap(({ key, match, text }) =>
    match === 'any' ? [key] : [key, match === 'prefix' ? `${text}_` : text],
  )
  const words = [domain, ...parts].map((part) => part.replaceAll(/[^\w.-]+/g, '-').replaceAll(/^-+|-+$/g, ''))
  return words.filter((word) => word !== '').join('.')
}
