import { unitPattern } from '@weir/core/limits/limit.ts'
import { unitDimensions, usageDimensions } from './columns.ts'
import { labelPattern, unitParameters, unitsMax } from './parameters.ts'
import { type GivenParameters, listOf } from './read-parameters.ts'
import { type AskedAt, type ParsedQuery, parseQuery, type RollupQuery } from './usage-query.ts'

/** A query of usage by unit. `only.unit` has its units; a column is one of `unitDimensions`, or `dimension.NAME`. */
export type UnitQuery = RollupQuery<string>

/** As many as a decision has. */
const labelsMax = 8
const isLabel = (name: string) => new RegExp(`^${labelPattern}$`).test(name)
/** Whether usage by unit has a column of this name, and usage has none. */
export const isUnitColumn = (name: string): boolean =>
  isLabel(name) || unitDimensions.some((one) => one === name && !usageDimensions.some((usage) => usage === one))
const withoutNot = (name: string) => name.replace(/^not_/, '')
/** Parameters of usage that its rollup of units does not know. */
const foreign: ReadonlySet<string> = new Set([
  ...usageDimensions.filter((name) => !unitDimensions.some((one) => one === name)),
  'price',
])
const shownAs = [...unitDimensions, 'dimension.NAME']

/** What is wrong with the units of a query. */
function unitProblems(units: readonly string[], top: unknown): string[] {
  const problems: string[] = []
  if (units.length > unitsMax) problems.push(`unit has ${units.length} values; at most ${unitsMax} are taken`)
  const wrong = units.find((unit) => !new RegExp(unitPattern).test(unit))
  if (wrong !== undefined) {
    problems.push(
      `unit must be the name of a unit, such as tokens, but is ${JSON.stringify(wrong)}; usage without unit sums costs and requests`,
    )
  }
  if (units.length > 1 && top !== undefined) problems.push('top takes one unit: quantities of several have no rank')
  return problems
}

/** Reads a query of usage by unit from query parameters. All problems together. */
export function parseUnitQuery(given: GivenParameters, at: AskedAt): ParsedQuery<string> {
  const units = [...new Set(listOf(given.unit))]
  const problems = unitProblems(units, given.top)
  const isForeign = ([name, value]: readonly [string, unknown]) =>
    foreign.has(withoutNot(name)) || (name === 'step' && value === 'minute')
  const conflicts = Object.entries(given).filter(isForeign)
  if (conflicts.length > 0) {
    const names = conflicts.map(([name]) => (name === 'step' ? 'step=minute' : name)).join(', ')
    problems.push(`unit conflicts with ${names}: units are summed by quarter hour, by ${shownAs.join(', ')}`)
  }
  const named = [...Object.keys(given).map(withoutNot), ...listOf(given.by).join().split(',')]
  const labels = [...new Set(named.filter(isLabel))]
  if (labels.length > labelsMax) problems.push(`${labels.length} labels are named; at most ${labelsMax} are taken`)
  const asked = Object.fromEntries(Object.entries(given).filter((entry) => !isForeign(entry)))
  const askable = {
    dimensions: [...unitDimensions, ...labels],
    rawDimensions: [],
    hasMinutes: false,
    parameters: unitParameters(labels),
    shownAs,
    amount: 'quantity',
  } as const
  return parseQuery<string>(askable, { ...asked, unit: units }, at, problems)
}
