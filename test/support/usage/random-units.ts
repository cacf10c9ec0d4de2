import { type DecisionInput, encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import fc from 'fast-check'

/** Midnight in Kathmandu is within an hour; so are six quarters. */
export const unitsFromMs = Date.parse('2027-03-27T17:00:00Z')
const spanMs = 6 * 900_000

const subjects = ['acme', 'bolt', "o'neil", '=1+1"\r\n,'] as const
const units = ['tokens', 'output_tokens', 'usd'] as const
/** Names whose order is another one with `=` behind them, and values that look like names. */
const labels = { model: ['small', 'large=2', "x', 'y"], tag: ['größe', ''], 'tag-b': ['model=small', '\\'] } as const

const quantities = fc.dictionary(fc.constantFrom<string>(...units), fc.integer({ min: 0, max: 1_000_000_000_000 }))
const dims = fc
  .record(
    Object.fromEntries(Object.entries(labels).map(([name, values]) => [name, fc.constantFrom<string>(...values)])),
    { requiredKeys: [] },
  )
  // In any order of the names: it says nothing.
  .chain((one) => fc.shuffledSubarray(Object.entries(one), { minLength: Object.keys(one).length }))
  .map((entries) => Object.fromEntries(entries.map(([name, value = '']) => [name, value])))

const exchange = fc.record({
  after: fc.nat(spanMs - 1),
  subject: fc.constantFrom(...subjects),
  keyId: fc.constantFrom('', 'k1'),
  plan: fc.constantFrom('free', 'top'),
  route: fc.constantFrom('POST /v1/chat', '*'),
  meter: fc.constantFrom('', 'chat', 'render'),
  dims,
  parents: fc.constantFrom<readonly string[]>([], ['bolt'], ['bolt', 'acme']),
  kind: fc.constantFrom('used', 'held', 'settled', 'given back', 'unused', 'denied', 'plain'),
  quantities,
  settled: quantities,
  basis: fc.constantFrom<NonNullable<DecisionInput['basis']>>('reported', 'counted', 'bound'),
})
type Exchange = typeof exchange extends fc.Arbitrary<infer One> ? One : never

const mapped = (of: Readonly<Record<string, number>>, to: (quantity: number) => number) =>
  Object.fromEntries(Object.entries(of).map(([name, quantity]) => [name, to(quantity)]))

/** The records of an exchange: its decision, and perhaps a correction of that. */
function recordsOf({ after, kind, quantities: some, settled, basis, ...who }: Exchange): DecisionInput[] {
  const tsMs = unitsFromMs + after
  const decision = decisionInput({ ...who, tsMs, id: uuidv7(tsMs), cost: 3 })
  const correction = { corrects: decision.id, adjustment: -1 }
  const corrected = { ...decision, id: uuidv7(tsMs), cost: 0, count: 0, correction }
  switch (kind) {
    case 'used':
      return [{ ...decision, units: some, basis }]
    case 'held':
      return [{ ...decision, held: some }]
    case 'settled':
      return [
        { ...decision, held: some },
        { ...corrected, held: some, units: settled, basis },
      ]
    case 'given back':
      return [
        { ...decision, held: some },
        { ...corrected, held: some, units: mapped(some, () => 0), basis, charged: 'no' },
      ]
    case 'unused':
      return [
        { ...decision, units: some, basis },
        { ...corrected, units: mapped(some, (quantity) => -quantity), basis, charged: 'no' },
      ]
    case 'denied':
      return [{ ...decision, units: some, outcome: 'deny', reason: 'limit', deniedBy: 'tpm', charged: 'no', count: 40 }]
    default:
      return [decision]
  }
}

/** Records of so many random exchanges. */
export const randomUnits = (numRuns: number, seed: number): DecisionInput[] =>
  fc.sample(exchange, { numRuns, seed }).flatMap(recordsOf)

/**
 * Corrections that came late: settlements of decisions that were open, and of others that used units the news that they
 * used nothing.
 */
export function lateSettlements(records: readonly DecisionInput[], seed: number): DecisionInput[] {
  const corrected = new Set(records.map(({ correction }) => correction?.corrects))
  const open = records.filter(({ id, outcome, correction, held, units: used }) => {
    const isOpen = outcome === 'allow' && correction === undefined && !corrected.has(id)
    return isOpen && (held !== undefined || used !== undefined)
  })
  const settled = fc.sample(quantities, { numRuns: open.length, seed })
  return open.map((one, at) => ({
    ...one,
    id: uuidv7(one.tsMs),
    cost: 0,
    count: 0,
    correction: { corrects: one.id, adjustment: -1 },
    ...(one.held === undefined
      ? { units: mapped(one.units ?? {}, (quantity) => -quantity), charged: 'no' }
      : { units: settled[at] ?? {}, basis: at % 2 === 0 ? 'reported' : 'counted' }),
  }))
}

/** What records used, one unit of one record each, by the promise of docs/usage.md. */
export const usedOf = (records: readonly DecisionInput[]) =>
  records.flatMap((one) =>
    one.outcome === 'deny'
      ? []
      : Object.entries(one.units ?? {}).map(([unit, quantity]) => ({ ...one, unit, quantity: BigInt(quantity) })),
  )

/** Lines as metering inserts them. */
export function linesOf(records: readonly DecisionInput[], journal: string): Buffer {
  const lines = records.map(
    (record, seq) =>
      `${encodeDecisionOpen(record)},"journal":"${journal}","seq":${seq},"partition":${seq % 3},"offset":${seq}}\n`,
  )
  return Buffer.from(lines.join(''))
}
