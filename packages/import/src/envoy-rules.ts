import { type EnvoyDescriptor, type ImportNote, stepName } from './envoy-config.ts'

/** One entry of the descriptors that a rule is for. */
export interface Step {
  readonly key: string
  /** `written`: this value; `prefix`: any that begins so; `any`: whatever it is. */
  readonly match: 'written' | 'prefix' | 'any'
  readonly text: string
  /** Whether values are counted apart. */
  readonly hasOverrides: boolean
}

/** The outcome for descriptors with these entries. */
export interface Rule {
  /** Never empty. */
  readonly steps: readonly Step[]
  /** Whose limit is meant. */
  readonly from: EnvoyDescriptor
  /** Whether `from` is only why there is no limit: it comes before a more general one that has one. */
  readonly isGap: boolean
}

interface Candidate {
  readonly descriptor: EnvoyDescriptor
  readonly step: Step
  readonly rules: readonly Rule[]
}

/** A policy has at most this many routes; the rules of two that overlap multiply. */
export const rulesMax = 10_000

/**
 * The rules of a list of descriptors, so that the most specific of those that match says what the reference server
 * says.
 *
 * That server goes down one branch: it takes a written value before the first beginning that fits, that before the key
 * alone, and never comes back to try another. Where the branch that it takes has no limit and one that it has passed
 * over has, a rule without a limit (a gap) says so.
 */
export function rulesBelow(descriptors: readonly EnvoyDescriptor[], notes: ImportNote[]): readonly Rule[] {
  const rules: Rule[] = []
  for (const sameKey of Map.groupBy(withoutKeyPatterns(descriptors, notes), ({ key }) => key).values()) {
    const candidates = inOrderOfMatching(sameKey, notes).map((descriptor) => candidateOf(descriptor, notes))
    // Written values come before these, and before no others.
    const generals = candidates.filter(({ step }) => step.match !== 'written')
    for (const candidate of candidates) {
      rules.push(...withGaps(candidate, generals.slice(generals.indexOf(candidate) + 1)))
      if (rules.length > rulesMax) return rules
    }
  }
  return rules
}

/** The server takes a key that ends in `*`, without a value, for the beginning of keys. */
function withoutKeyPatterns(descriptors: readonly EnvoyDescriptor[], notes: ImportNote[]): EnvoyDescriptor[] {
  return descriptors.filter((one) => {
    if (one.value !== '' || !one.key.endsWith('*')) return true
    const what = `${one.key}: a key that ends in \`*\` matches the beginnings of keys, which a route cannot; it is left out with all below it`
    notes.push({ ...spotOf(one), kind: 'lost', what, advice: 'Write a descriptor for each key that is meant.' })
    return false
  })
}

/** Written values, then beginnings, then the key alone; without those that another always comes before. */
function inOrderOfMatching(descriptors: readonly EnvoyDescriptor[], notes: ImportNote[]): readonly EnvoyDescriptor[] {
  const prefixes: EnvoyDescriptor[] = []
  const rest = (one: EnvoyDescriptor) => {
    const beginning = one.value.slice(0, -1)
    const first = prefixes.find(({ value }) => beginning.startsWith(value.slice(0, -1)))
    if (first === undefined) return true
    const what = `${stepName(one)} is never reached: ${stepName(first)}, line ${first.line}, stands before it; it is left out`
    notes.push({ ...spotOf(one), kind: 'info', what, advice: 'If it was meant, put the longer value first.' })
    return false
  }
  for (const one of descriptors) if (one.value.endsWith('*') && rest(one)) prefixes.push(one)
  const plain = descriptors.filter((one) => one.value === '' && rest(one))
  const written = descriptors.filter(({ value }) => value !== '' && !value.endsWith('*'))
  return [...written, ...prefixes.toSorted((a, b) => b.value.length - a.value.length), ...plain]
}

function candidateOf(descriptor: EnvoyDescriptor, notes: ImportNote[]): Candidate {
  const step = stepOf(descriptor)
  const isPassage = descriptor.limit === undefined && descriptor.descriptors.length > 0
  const own: Rule[] = isPassage ? [] : [{ steps: [step], from: descriptor, isGap: false }]
  for (const one of descriptor.descriptors) if (one.value.endsWith('*')) notes.push(nestedBeginning(one))
  const below = rulesBelow(descriptor.descriptors, notes)
  return { descriptor, step, rules: [...own, ...below.map((rule) => ({ ...rule, steps: [step, ...rule.steps] }))] }
}

function nestedBeginning(descriptor: EnvoyDescriptor): ImportNote {
  const what = `${stepName(descriptor)} is a beginning below another descriptor: some versions of the server look for those at the top only`
  return { ...spotOf(descriptor), kind: 'info', what, advice: 'Nothing, if it is meant: here it matches.' }
}

function stepOf({ key, value, isShared }: EnvoyDescriptor): Step {
  if (value === '' || value === '*') return { key, match: 'any', text: '', hasOverrides: !isShared }
  if (value.endsWith('*')) return { key, match: 'prefix', text: value.slice(0, -1), hasOverrides: !isShared }
  return { key, match: 'written', text: value, hasOverrides: false }
}

/**
 * The rules of a candidate, and a gap wherever it would let a more general one through that the server passes over.
 * After the candidate's own step a gap takes any values: so it is found after every rule of the candidate's own, and
 * comes before none.
 */
function withGaps({ descriptor, step, rules }: Candidate, passedOver: readonly Candidate[]): readonly Rule[] {
  const found = [...rules]
  for (const general of passedOver) {
    if (!isCovered(step, general.step)) continue
    for (const rule of general.rules) {
      const steps = [step, ...rule.steps.slice(1).map(({ key }) => anyOf(key))]
      if (rule.isGap || isOpen(rule.from) || found.some((one) => isSamePattern(steps, one.steps))) continue
      found.push({ steps, from: descriptor, isGap: true })
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

/** Whether descriptors that match it meet no limit. */
export const isOpen = ({ limit }: EnvoyDescriptor): boolean =>
  limit === undefined || (limit.per === undefined && limit.replaces.length === 0)

/** Whether whatever matches the one matches the other too. */
function isCovered(one: Step, general: Step): boolean {
  if (one.key !== general.key) return false
  return general.match === 'any' || (one.match !== 'any' && one.text.startsWith(general.text))
}

const spotOf = ({ file, line }: EnvoyDescriptor) => ({ file, line })
