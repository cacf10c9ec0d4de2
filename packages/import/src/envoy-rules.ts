import { type EnvoyDescriptor, stepName } from './envoy-config.ts'
import type { Notes } from './notes.ts'

/** One entry of the descriptors that a rule is for. */
export interface Step {
  readonly key: string
  /** `exact`: this value; `prefix`: every value that starts with it; `any`: every value. */
  readonly match: 'exact' | 'prefix' | 'any'
  readonly text: string
  /** Whether each value has a count of its own. */
  readonly hasOverrides: boolean
}

/** The outcome for descriptors with these entries. */
export interface Rule {
  /** Never empty. */
  readonly steps: readonly Step[]
  /** The descriptor that has the limit. */
  readonly from: EnvoyDescriptor
  /** Whether it has no limit and only keeps a more general descriptor, which has one, from matching. */
  readonly isShadow: boolean
  /** Whether Envoy charges such descriptors at the end of a stream too. */
  readonly isLate?: boolean
}

interface Candidate {
  readonly descriptor: EnvoyDescriptor
  readonly step: Step
  readonly rules: readonly Rule[]
}

/** A policy has at most this many routes; the rules of two that overlap multiply. */
export const rulesMax = 10_000

/**
 * Returns the rules of a list of descriptors: the most specific rule that matches decides as the reference server does.
 *
 * That server walks down one branch: it prefers an exact value to the first prefix that matches, and that to the key
 * alone, and it never backtracks. Where the branch has no limit but a branch that it skipped has one, a rule without a
 * limit keeps the skipped one from matching.
 */
export function rulesBelow(descriptors: readonly EnvoyDescriptor[], notes: Notes): readonly Rule[] {
  const rules: Rule[] = []
  for (const sameKey of Map.groupBy(withoutKeyPatterns(descriptors, notes), ({ key }) => key).values()) {
    const candidates = inOrderOfMatching(sameKey, notes).map((descriptor) => candidateOf(descriptor, notes))
    // Exact values come before these, and before no others.
    const generals = candidates.filter(({ step }) => step.match !== 'exact')
    for (const candidate of candidates) {
      rules.push(...withShadows(candidate, generals.slice(generals.indexOf(candidate) + 1)))
      if (rules.length > rulesMax) return rules
    }
  }
  return rules
}

/**
 * Names each `*` that no route can say: newer versions of the server match the text `KEY_VALUE`, each `*` any part of
 * it. The star itself every version matches, so that its route stays; not so a key that ends in `*`.
 */
function withoutKeyPatterns(descriptors: readonly EnvoyDescriptor[], notes: Notes): EnvoyDescriptor[] {
  return descriptors.filter((one) => {
    const isPattern = one.value === '' && one.key.endsWith('*')
    if (!one.key.includes('*') && !/\*[^*]/.test(one.value)) return true
    const [what, advice] = isPattern
      ? ['matches keys by prefix, which a route cannot; it is left out with all below it', 'each key']
      : ['a `*` before its end is any text in newer versions; the route is for the star itself', 'each text']
    notes.lost(one, `${stepName(one)}: ${what}`, `Write a descriptor for ${advice} that you need.`)
    return !isPattern
  })
}

/** Exact values, then prefixes, then the key alone; without those that another always shadows. */
function inOrderOfMatching(descriptors: readonly EnvoyDescriptor[], notes: Notes): readonly EnvoyDescriptor[] {
  const prefixes: EnvoyDescriptor[] = []
  const rest = (one: EnvoyDescriptor) => {
    const prefix = beginningOf(one)
    const first = prefixes.find((other) => prefix.startsWith(beginningOf(other)))
    if (first === undefined) return true
    const what = `${stepName(one)} is never reached, because ${stepName(first)} (line ${first.line}) comes first; it is left out`
    notes.info(one, what, 'If intended, put the longer value first.')
    return false
  }
  for (const one of descriptors) if (one.value.endsWith('*') && rest(one)) prefixes.push(one)
  const plain = descriptors.filter((one) => one.value === '' && rest(one))
  const exact = descriptors.filter(({ value }) => value !== '' && !value.endsWith('*'))
  return [...exact, ...prefixes.toSorted((a, b) => beginningOf(b).length - beginningOf(a).length), ...plain]
}

/** Several `*` at the end are one. */
const beginningOf = ({ value }: Pick<EnvoyDescriptor, 'value'>) => value.replace(/\*+$/, '')

function candidateOf(descriptor: EnvoyDescriptor, notes: Notes): Candidate {
  const step = stepOf(descriptor)
  const isParentOnly = descriptor.limit === undefined && descriptor.descriptors.length > 0
  const own: Rule[] = isParentOnly ? [] : [{ steps: [step], from: descriptor, isShadow: false }]
  for (const one of descriptor.descriptors) {
    const what = `${stepName(one)} is a prefix below another descriptor: some versions of the server match prefixes at the top only`
    if (one.value.endsWith('*')) notes.info(one, what, 'Nothing, if this is intended: the route matches.')
  }
  const below = rulesBelow(descriptor.descriptors, notes)
  return { descriptor, step, rules: [...own, ...below.map((rule) => ({ ...rule, steps: [step, ...rule.steps] }))] }
}

function stepOf({ key, value, isShared }: EnvoyDescriptor): Step {
  const text = beginningOf({ value })
  if (text === '') return { key, match: 'any', text, hasOverrides: !isShared }
  if (value.endsWith('*')) return { key, match: 'prefix', text, hasOverrides: !isShared }
  return { key, match: 'exact', text: value, hasOverrides: false }
}

/**
 * Returns a candidate's rules, and one without a limit wherever a more general candidate would match that the server
 * skips. Such a rule takes any values after the candidate's own step, so each of the candidate's own rules precedes it.
 */
function withShadows({ descriptor, step, rules }: Candidate, skipped: readonly Candidate[]): readonly Rule[] {
  const found = [...rules]
  for (const general of skipped) {
    if (!isSubset(step, general.step)) continue
    for (const rule of general.rules) {
      const steps = [step, ...rule.steps.slice(1).map(({ key }) => anyOf(key))]
      if (rule.isShadow || hasNoLimit(rule.from) || found.some((one) => isSamePattern(steps, one.steps))) continue
      found.push({ steps, from: descriptor, isShadow: true })
    }
  }
  return found
}

const anyOf = (key: string): Step => ({ key, match: 'any', text: '', hasOverrides: false })

const isSamePattern = (some: readonly Step[], others: readonly Step[]) =>
  some.length === others.length &&
  some.every(({ key, match, text }, at) => {
    const other = others[at]
    return other?.key === key && other.match === match && other.text === text
  })

/** Returns whether descriptors that match it have no limit. */
export const hasNoLimit = ({ limit }: EnvoyDescriptor): boolean =>
  limit === undefined || (limit.per === undefined && limit.replaces.length === 0)

/** Whether every value that matches the one matches the other too. */
function isSubset(one: Step, general: Step): boolean {
  if (one.key !== general.key) return false
  return general.match === 'any' || (one.match !== 'any' && one.text.startsWith(general.text))
}
