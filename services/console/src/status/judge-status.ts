import type { Status } from '@weir/api/status.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { ProcessStatus } from './ask-processes.ts'

/** Everything that is known of the installation; a text in place of a part says why it could not be read. */
export interface StatusParts {
  readonly completeness: Completeness | string
  readonly gaps: NonNullable<Status['gaps']> | string
  readonly failed: NonNullable<Status['failed_deliveries']> | string
  /** What is wrong with Redis; undefined for nothing. */
  readonly redis: string | undefined
  readonly policy: string | undefined
  readonly processes: readonly ProcessStatus[]
}

/** Usage follows within two seconds; a minute is no delay any more. */
const lateMs = 60_000

/** Metrics that are 0 where nothing is wrong now, in words for one and for more. */
const troubles: Readonly<Record<string, readonly [one: string, more: string]>> = {
  weir_consumer_stopped_partitions: [
    'partition is stopped: see weir dlq, weir metering seek',
    'partitions are stopped: see weir dlq, weir metering seek',
  ],
  weir_redis_servers_gone: ['Redis server is unreachable', 'Redis servers are unreachable'],
}

/** Less is a late call or two; the objective `exact` of docs/monitoring.md is broken by more. */
const withoutRedisMax = 0.001

const withoutRedis = (share: number) =>
  share > withoutRedisMax
    ? [`${(share * 100).toFixed(1)}% of the decisions of the last 5 minutes were made without Redis`]
    : []

/** A number with what agrees with it. */
const counted = (count: number | string, [one, more]: readonly [one: string, more: string]) =>
  `${count} ${Number(count) === 1 ? one : more}`
const deliveries = ['delivery', 'deliveries'] as const

const heldBackWords = ([endpoint, addresses]: readonly [string, number]) =>
  `deliveries to ${endpoint} are held back because it fails${addresses > 1 ? ` at ${addresses} addresses` : ''}: weir alerts ls --endpoint ${endpoint}`

function ofUsage({ completeThroughMs, silent }: Completeness, nowMs: number): string[] {
  const words = silent.map(
    ({ journal, sinceMs }) => `no reports from journal ${journal} since ${new Date(sinceMs).toISOString()}`,
  )
  if (completeThroughMs === undefined) return ['nothing is counted yet', ...words]
  const behindMs = nowMs - completeThroughMs
  if (behindMs > lateMs) words.push(`usage is ${Math.round(behindMs / 1_000)} s behind`)
  return words
}

const ofProcess = ({ name, said, ready, metrics, heldBack }: ProcessStatus): string[] => [
  ...said.map((line) => `${name}: ${line}`),
  ...(ready || said.length > 0 ? [] : [`${name} is not ready`]),
  ...Object.entries(troubles).flatMap(([metric, words]) =>
    (metrics[metric] ?? 0) > 0 ? [`${name}: ${counted(metrics[metric] ?? 0, words)}`] : [],
  ),
  ...withoutRedis(metrics.weir_decisions_without_redis_ratio ?? 0).map((words) => `${name}: ${words}`),
  ...Object.entries(heldBack).map((one) => `${name}: ${heldBackWords(one)}`),
]

const listed = <T>(part: readonly T[] | string, words: (one: T) => string): string[] =>
  typeof part === 'string' ? [part] : part.map(words)

/** A part that serves, and may not for long. */
const isWarning = (line: string) => line.includes(': warning: ')

/** Returns what a person has to look at, a sentence each, and what processes warn of; nothing where all is well. */
export function judgeStatus(parts: StatusParts, nowMs: number): { look: string[]; warnings: string[] } {
  const { completeness, gaps, failed, redis, policy, processes } = parts
  const ofAll = processes.flatMap(ofProcess)
  const look = [
    ...(typeof completeness === 'string' ? [completeness] : ofUsage(completeness, nowMs)),
    ...listed(gaps, ({ count, topic, cause }) => {
      return `${count} of ${topic} ${Number(count) === 1 ? 'is' : 'are'} missing from usage (${cause}) in the last 24 h`
    }),
    ...listed(failed, ({ endpoint, count }) => `${counted(count, deliveries)} to ${endpoint} failed for good in 24 h`),
    ...[redis, policy].flatMap((words) => words ?? []),
    ...ofAll.filter((line) => !isWarning(line)),
  ]
  return { look, warnings: ofAll.filter(isWarning) }
}
