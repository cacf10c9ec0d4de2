import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { StateFigures } from './policy/measure-state.ts'
import { type BenchOptions, type BenchReport, type BenchRow, spread } from './report.ts'

type Source = 'entities' | 'lines'
const sources: readonly Source[] = ['entities', 'lines']
/** Rounds with a million subjects; more say nothing new, and each takes some twenty seconds. */
const roundsMax = 3

async function measureOnce(source: Source): Promise<StateFigures> {
  const child = fork(new URL('./policy/measure-state.ts', import.meta.url), [source], { serialization: 'advanced' })
  const [figures]: unknown[] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the measuring process ended with ${code}`))),
  ])
  return figures as StateFigures
}

const shown: readonly (readonly [keyof StateFigures, string, string])[] = [
  ['getKeyMicros', 'a key looked up, with its subject and plan', 'µs'],
  ['putKeyMicros', 'a key added: checked and in force', 'µs'],
  ['putSubjectMicros', 'a subject edited', 'µs'],
  ['putLimitMillis', 'a limit edited', 'ms'],
  ['pageMillis', 'a page of 100 subjects by name', 'ms'],
  ['putLimitOfRoutesMillis', 'a limit of 5,000 among 10,000 routes edited', 'ms'],
  ['putRouteMillis', 'a route among 10,000 edited', 'ms'],
]

/**
 * A policy of a million subjects with a key each in one process: what it takes to hold, to start with and to change.
 */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const seen: Record<Source, StateFigures[]> = { entities: [], lines: [] }
  const count = Math.min(rounds, roundsMax)
  for (let round = 1; round <= count; round += 1) {
    for (const source of sources) seen[source].push(await measureOnce(source))
    progress(`round ${round} of ${count}`)
  }
  const row = (source: Source, label: string, unit: string, name: keyof StateFigures): BenchRow => ({
    label,
    unit,
    ...spread(seen[source].map((figures) => figures[name])),
  })
  return {
    name: 'policy: 1,000,000 subjects with one key each (aimed at: 600 bytes a subject, 5 s)',
    rows: [
      row('entities', 'load, from entities made on the way', 's', 'loadSeconds'),
      row('lines', 'load, from the lines of a snapshot in memory', 's', 'loadSeconds'),
      row('entities', 'load from entities, CPU', 's', 'loadCpuSeconds'),
      row('lines', 'load from lines, CPU', 's', 'loadCpuSeconds'),
      row('entities', 'heap', 'bytes/subject', 'heapBytesPerSubject'),
      row('lines', 'heap, from lines', 'bytes/subject', 'heapBytesPerSubject'),
      row('entities', 'RSS', 'bytes/subject', 'rssBytesPerSubject'),
      row('lines', 'RSS, from lines', 'bytes/subject', 'rssBytesPerSubject'),
      ...shown.map(([name, label, unit]) => row('entities', label, unit, name)),
    ],
    ratios: [],
  }
}
