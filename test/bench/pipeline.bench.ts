import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { WeirError } from '@weir/core/errors.ts'
import { type Measured, measureRate, measureRest } from './pipeline/measure.ts'
import { type Callers, startStack } from './pipeline/stack.ts'
import { tablesOf } from './pipeline/tables.ts'
import type { BenchOptions, BenchReport } from './report.ts'

const ratesDefault = [200, 1_000, 5_000, 10_000]
const partitionsDefault = [6, 24]
/** So many that a second of up to 1,000 requests has hardly two of one. */
const subjectsDefault = 1_000
/** What one machine's load could ask for, and a Kafka of one broker has. */
const [rateMax, partitionsMax, subjectsMax] = [100_000, 1_000, 100_000]

function readNumbers(name: string, given: readonly string[], max: number, otherwise: readonly number[]): number[] {
  const numbers = given.flatMap((text) => text.split(',')).map(Number)
  if (numbers.some((one) => !Number.isSafeInteger(one) || one < 1 || one > max))
    throw new WeirError('COMMAND_INVALID', `--${name} takes whole numbers from 1 to ${max}, not ${given.join(' ')}.`)
  // A rate leaves merges behind that a lower one would be charged with.
  return (numbers.length === 0 ? [...otherwise] : numbers).toSorted((a, b) => a - b)
}

function readTrees(given: readonly string[]): string[] {
  const trees = given.length === 0 ? [projectRoot] : given.map((tree) => resolve(tree))
  const missing = trees.find((tree) => !existsSync(join(tree, 'weir')))
  if (missing === undefined) return trees
  throw new WeirError('COMMAND_INVALID', `--tree ${missing} is no checkout of Weir: it has no file weir.`)
}

/** Starts one checkout, and measures it at rest and at each rate. */
async function playStack(
  tree: string,
  partitions: number,
  callers: Callers,
  rates: readonly number[],
  say: (line: string) => void,
) {
  const dir = await mkdtemp(join(tmpdir(), 'weir-bench-pipeline-'))
  try {
    const stack = await startStack(tree, partitions, dir, callers)
    try {
      const measured = [await measureRest(stack)]
      for (const rate of rates) {
        const one = await measureRate(stack, rate)
        measured.push(one)
        if (one.trouble !== undefined) say(`${tree}, ${partitions} partitions: ${rate}/s was not kept: ${one.trouble}`)
      }
      return measured
    } finally {
      await stack.close()
    }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** What everything that `weir up` starts costs, at rest and while decisions come in; checkouts take turns. */
export async function run({ rounds, progress, more }: BenchOptions): Promise<BenchReport> {
  const rates = readNumbers('rate', more.rate, rateMax, ratesDefault)
  const partitions = readNumbers('partitions', more.partitions, partitionsMax, partitionsDefault)
  const [subjects = subjectsDefault, another] = readNumbers('subjects', more.subjects, subjectsMax, [subjectsDefault])
  if (another !== undefined) throw new WeirError('COMMAND_INVALID', '--subjects takes one number.')
  const { coalesce } = more
  const trees = readTrees(more.tree)
  const contestants = partitions.flatMap((count) => trees.map((tree) => ({ tree, count, seen: [] as Measured[][] })))
  for (let round = 1; round <= rounds; round++) {
    for (const { tree, count, seen } of round % 2 === 1 ? contestants : contestants.toReversed()) {
      seen.push(await playStack(tree, count, { subjects, coalesce }, rates, progress))
      progress(`round ${round} of ${rounds}: ${tree}, ${count} partitions`)
    }
  }
  const columns = [0, ...rates]
  return {
    name: `pipeline: everything that weir up starts, three limits, ${subjects} subjects, one check of /v1/check a decision, all recorded${coalesce ? ', coalesced' : ''}`,
    tables: contestants.flatMap(({ tree, count, seen }) => {
      const title = `${trees.length > 1 ? `${tree}, ` : ''}${count} partitions`
      return tablesOf(
        title,
        columns.map((_, at) => seen.flatMap((round) => round[at] ?? [])),
      )
    }),
    rows: [],
    ratios: [],
  }
}
