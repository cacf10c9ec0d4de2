import { type BenchTable, type Spread, spread } from '../report.ts'
import type { Measured } from './measure.ts'

/** All rounds of one checkout with one number of partitions: rest first, then a list for each rate. */
export type Rounds = readonly (readonly Measured[])[]

type Row = BenchTable['rows'][number]

/** Kinds of threads below this share of the stack, at every rate, are left out. */
const shownShare = 0.01

const columnOf = (rounds: readonly Measured[]): string => {
  const rate = rounds[0]?.rate ?? 0
  if (rate === 0) return 'at rest'
  return `${rate.toLocaleString('en-US')}/s${rounds.every(({ trouble }) => trouble === undefined) ? '' : ' NOT KEPT'}`
}

function row(label: string, columns: Rounds, of: (one: Measured) => number | undefined): Row {
  const values = columns.map((rounds): Spread | undefined => {
    const found = rounds.map(of).filter((value) => value !== undefined)
    return found.length === 0 ? undefined : spread(found)
  })
  return { label, values }
}

/** Names of processes, the dearest first. */
function processesOf(columns: Rounds): string[] {
  const sums = new Map<string, number>()
  for (const { cpu } of columns.flat()) {
    for (const [name, seconds] of cpu) if (!name.includes(',')) sums.set(name, (sums.get(name) ?? 0) + seconds)
  }
  return [...sums].toSorted(([, a], [, b]) => b - a).map(([name]) => name)
}

/** Its kinds of threads that matter. */
function threadsOf(columns: Rounds, process: string): string[] {
  const all = columns.flat()
  const names = new Set(all.flatMap(({ cpu }) => [...cpu.keys()].filter((name) => name.startsWith(`${process},`))))
  const share = (name: string) => Math.max(...all.map(({ cpu }) => (cpu.get(name) ?? 0) / (cpu.get('all') ?? 1)))
  return [...names].filter((name) => share(name) >= shownShare).toSorted((a, b) => share(b) - share(a))
}

/** The three tables of one checkout with one number of partitions. */
export function tablesOf(title: string, columns: Rounds): BenchTable[] {
  const names = columns.map(columnOf)
  const processes = processesOf(columns)
  const perDecision = (amount: number | undefined, { rate, decisions }: Measured) =>
    rate === 0 ? undefined : (amount ?? 0) / decisions
  const us = (name: string) => (one: Measured) => perDecision((one.cpu.get(name) ?? 0) * 1e6, one)
  const written = processes.filter((name) => columns.flat().some((one) => (one.written.get(name) ?? 0) > 0))
  return [
    {
      title: `${title}: CPU, % of a core`,
      columns: names,
      rows: processes.map((name) => row(name, columns, ({ cpu, seconds }) => ((cpu.get(name) ?? 0) / seconds) * 100)),
    },
    {
      title: 'CPU, µs a decision',
      columns: names.slice(1),
      rows: processes.flatMap((name) => [
        row(name, columns.slice(1), us(name)),
        ...threadsOf(columns.slice(1), name).map((thread) => row(`  ${thread}`, columns.slice(1), us(thread))),
      ]),
    },
    {
      title: 'and besides',
      columns: names,
      rows: [
        row('decisions/s', columns, ({ decisions, seconds }) => decisions / seconds),
        row('p50 ms to be queryable', columns, ({ delayMs }) => delayMs?.p50),
        row('p99 ms to be queryable', columns, ({ delayMs }) => delayMs?.p99),
        row('inserts/s', columns, ({ inserts, seconds }) => inserts / seconds),
        ...written.map((name) =>
          row(`${name}, bytes to disk a decision`, columns, (one) => perDecision(one.written.get(name), one)),
        ),
        ...processes.map((name) => row(`${name}, MB resident`, columns, ({ memory }) => memory.get(name))),
        row('other programs, cores', columns, ({ otherCores }) => otherCores),
      ],
    },
  ]
}
