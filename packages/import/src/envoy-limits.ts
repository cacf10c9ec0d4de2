import type { JsonObject } from '@weir/policy/entities.ts'
import { attributesOfKeys, descriptorMethod, descriptorSegment } from '@weir/policy/match/match-descriptor.ts'
import { parseMatch } from '@weir/policy/reader/read-routes.ts'
import { type EnvoyDescriptor, windowOfUnit } from './envoy-config.ts'
import { hasNoLimit, type Rule, type Step } from './envoy-rules.ts'
import { spotName } from './foreign-file.ts'
import type { ImportedPolicy, ImportNote } from './imported-policy.ts'
import { LimitNames } from './limit-names.ts'

interface DomainRules {
  readonly domain: string
  readonly rules: readonly Rule[]
}

interface DomainRule {
  readonly domain: string
  readonly rule: Rule
}

/** A limit of the policy with the name that it has there. */
interface Named extends DomainRule {
  readonly name: string
}

/** Like `limitsPerDecisionMax` of scopes in one `by`. */
const scopePartsMax = 8
/** Weir's gRPC server answers longer questions, and longer names, with an error. */
const stepsMax = 16
const nameLengthMax = 128
/** The size of a limit that only replaces others: no caller reaches it. */
const unreachable = { size: 9_000_000_000_000_000, window: '1s' } as const

/** Returns names, limits and routes of all rules; adds a note for each that a policy cannot express. */
export function limitsOfRules(domains: readonly DomainRules[], notes: ImportNote[]): ImportedPolicy {
  const expressible = domains.flatMap(({ domain, rules }) =>
    rules
      .map((rule) => ({ domain, rule, match: matchOf(domain, rule) }))
      .filter(({ match, rule }) => isExpressible({ domain, match, rule }, notes)),
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
      body: { match, limits: name === undefined ? [] : [name] },
    })),
  }
}

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
  if (match === 'any')
    return `:${key
      .replaceAll(/\W/g, '_')
      .replace(/^(?=\d)/, '_')
      .slice(0, 64)}`
  return match === 'prefix' ? `${descriptorSegment(text)}*` : descriptorSegment(text)
}

/** Whether there can be such a route, and a limit that counts so. */
function isExpressible({ domain, match, rule }: DomainRule & { readonly match: string }, notes: ImportNote[]): boolean {
  const { from, steps } = rule
  const lose = (what: string, advice: string) => {
    notes.push({ file: from.file, line: from.line, kind: 'lost', what, advice })
    return false
  }
  if (steps.length > stepsMax) {
    const what = `it is ${steps.length} descriptors deep, and a question has at most ${stepsMax} entries; it is left out`
    return lose(what, 'Have Envoy send fewer entries.')
  }
  const long = [domain, ...steps.map(({ key }) => key)].find((name) => !isName(name))
  if (long !== undefined) {
    const what = `${JSON.stringify(long)} has more than ${nameLengthMax} characters or a control character; it is left out`
    return lose(what, 'Give the domain or the key another name, there and in Envoy.')
  }
  if (parseMatch(match) === undefined) {
    return lose(
      `${match}: no route can be written so; it is left out`,
      'Shorten the texts: a route has at most 256 characters.',
    )
  }
  const apart = isLimited(rule) ? apartBy(rule.steps) : []
  const odd = apart.find((key) => !/^[\x21-\x7e]{1,64}$/.test(key))
  if (odd !== undefined) {
    const advice = 'Give the key 1 to 64 printable ASCII characters without spaces, there and in Envoy.'
    return lose(`the key ${JSON.stringify(odd)} cannot stand in \`by\`; its limit is left out`, advice)
  }
  if (apart.length <= scopePartsMax) return true
  const advice = 'Write values for some of the keys.'
  return lose(
    `counts ${apart.length} keys apart, and \`by\` has at most ${scopePartsMax}; its limit is left out`,
    advice,
  )
}

const isName = (text: string) => text.length <= nameLengthMax && /^\P{Cc}*$/u.test(text)

/** The attributes whose values are counted apart. */
function apartBy(steps: readonly Step[]): readonly string[] {
  const names = attributesOfKeys(steps.map(({ key }) => key))
  return names.filter((_, at) => steps[at]?.hasOverrides === true)
}

function limitBody({ from, steps }: Rule, others: LimitsByName, notes: ImportNote[]): JsonObject {
  const apart = apartBy(steps)
  const per = from.limit?.per
  const replaces = replacedBy(from, others, notes)
  const counted = per === undefined ? unreachable : { size: per.requests, window: windowOfUnit[per.unit] }
  return {
    ...{ algorithm: 'fixed_window', ...counted },
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
function replacedBy(from: EnvoyDescriptor, { named, replacers }: LimitsByName, notes: ImportNote[]): string[] {
  const note = (kind: ImportNote['kind'], what: string, advice: string) =>
    notes.push({ file: from.limit?.file ?? from.file, line: from.limit?.line ?? from.line, kind, what, advice })
  const wanted = from.limit?.replaces ?? []
  const replacer = replacers.get(from.limit?.name ?? '')
  if (wanted.length > 0 && from.limit?.name !== '' && replacer !== undefined) {
    const what = `${replacer.name} replaces this limit, so that it replaces none itself: both apply, which is stricter`
    note('changed', what, `Name ${wanted.join(', ')} in the \`replaces\` of ${replacer.name} too, if that is meant.`)
    return []
  }
  return wanted.flatMap((name) => {
    const replaced = (named.get(name) ?? []).map((one) => one.name)
    if (replaced.length === 0)
      note(
        'info',
        `no limit of the domain is named ${name}, so nothing is replaced`,
        'Correct the name if it was meant.',
      )
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
