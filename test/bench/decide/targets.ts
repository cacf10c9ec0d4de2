import { type BenchRatio, type BenchRow, spread } from '../report.ts'
import { type Together, togetherMax } from './contestant.ts'
import { chargedLabel, heldLabel } from './holds.ts'
import { pipelinedUnionLabel, unionLabel } from './libraries.ts'
import type { Cost } from './measure.ts'
import { plainLabel, sortedSetLabel } from './recipes.ts'
import { levelsLabel, weirLabel } from './weir.ts'

/** What the contestant of this name, asked this way, cost in one round. */
export type Round = (label: string, together: Together) => Cost

const allCpuUs = ({ redisCpuUs, nodeCpuUs }: Cost) => redisCpuUs + nodeCpuUs

const one = weirLabel('fixed_window', 1)
const two = weirLabel('fixed_window', 2)
const three = weirLabel('fixed_window', 3)
const eight = weirLabel('fixed_window', 8)
const log = weirLabel('sliding_log', 1)

/** Absolute figures that are aimed at; they hold on the machine they are measured on. */
export function targetRows(rounds: readonly Round[]): BenchRow[] {
  const row = (label: string, unit: string, value: (round: Round) => number) => ({
    label,
    unit,
    ...spread(rounds.map(value)),
  })
  return [
    row('Redis CPU, two limits in batches', 'µs/decision (target ≤ 12)', (of) => of(two, togetherMax).redisCpuUs),
    row('Node CPU, two limits in batches', 'µs/decision (target ≤ 6)', (of) => of(two, togetherMax).nodeCpuUs),
  ]
}

/** Each of two contestants of the same round. */
export function targetRatios(rounds: readonly Round[]): BenchRatio[] {
  const ratio = (label: string, target: string | undefined, value: (round: Round) => number) => ({
    label,
    ...spread(rounds.map(value)),
    ...(target === undefined ? {} : { target }),
  })
  const versus = (what: string, opponent: string, mine: string, value: (cost: Cost) => number, target?: string) =>
    ratio(`${what}, ${mine} / ${opponent}, both in batches`, target, (of) => {
      return value(of(mine, togetherMax)) / value(of(opponent, togetherMax))
    })
  const throughput = ({ decisionsPerSecond }: Cost) => decisionsPerSecond
  const nodeCpu = ({ nodeCpuUs }: Cost) => nodeCpuUs
  const redisCpu = ({ redisCpuUs }: Cost) => redisCpuUs
  return [
    ratio('Redis CPU, two limits in batches / one by one', '≤ 0.65', (of) => {
      return of(two, togetherMax).redisCpuUs / of(two, 1).redisCpuUs
    }),
    ratio(`Redis CPU, two limits in batches / one ${plainLabel}`, '≤ 1.3', (of) => {
      return of(two, togetherMax).redisCpuUs / of(plainLabel, 1).redisCpuUs
    }),
    versus('Redis CPU', plainLabel, two, redisCpu),
    versus('Redis CPU', plainLabel, one, redisCpu),
    ratio(`Redis CPU, ${heldLabel} / ${chargedLabel}, one by one`, '≤ 3.5', (of) => {
      return of(heldLabel, 1).redisCpuUs / of(chargedLabel, 1).redisCpuUs
    }),
    versus('Redis CPU', chargedLabel, heldLabel, redisCpu, '≤ 3.5'),
    versus('Redis CPU', eight, levelsLabel, redisCpu),
    versus('Node CPU', eight, levelsLabel, nodeCpu),
    versus('decisions/s', unionLabel, three, throughput, '≥ 2.5'),
    versus('Node + Redis CPU', unionLabel, three, allCpuUs, '≤ 0.4'),
    versus('decisions/s', pipelinedUnionLabel, three, throughput),
    versus('Node + Redis CPU', pipelinedUnionLabel, three, allCpuUs),
    versus('decisions/s', sortedSetLabel, log, throughput, '> 1'),
    versus('Redis CPU', sortedSetLabel, log, redisCpu, '< 1'),
  ]
}
