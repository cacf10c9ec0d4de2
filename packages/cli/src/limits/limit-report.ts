import { algorithmFacts } from '@weir/core/limits/algorithm-facts.ts'
import { partText } from '@weir/core/limits/limit.ts'
import type { ExplainedLimit } from '@weir/policy/match/resolve-limits.ts'
import type { AskedLimits } from '@weir/redis/asked-limits.ts'
import { scopeText } from '@weir/redis/keys.ts'
import type { LimitAdmin, PeekedCount } from '@weir/redis/limit-admin.ts'
import { textTable } from '../text-table.ts'

/** Counts of one limit that are reported; a person reads no longer list. */
const countsMax = 200

/** Reports one count of a limit, in the names of the wire. */
function countReport({ key, now, asked }: PeekedCount) {
  const [state] = now.limits
  return {
    key,
    scope: scopeText(key),
    used: state?.used ?? 0,
    remaining: state?.remaining ?? 0,
    reset_ms: state?.resetMs ?? 0,
    blocked_ms: now.reason === 'blocked' ? now.retryAfterMs : 0,
    /** Whether this count would admit the request now. */
    admits: asked.allowed,
    /** -1 where waiting does not help. */
    retry_after_ms: asked.reason === 'cost_exceeds_limit' ? -1 : asked.retryAfterMs,
  }
}

/** Reports a limit with its counts, in the names of the wire: what `--json` prints. Keys are only added. */
async function report(
  admin: LimitAdmin,
  { limit, because, own }: ExplainedLimit,
  { scope }: AskedLimits,
  cost: number,
) {
  const found = await admin.find(limit, scope)
  const keys = found?.keys.slice(0, countsMax) ?? []
  const peeked: PeekedCount[] = []
  for (const key of keys) peeked.push(await admin.peek(limit, key, scope, cost))
  const { name, algorithm, mode, size, capacity, span, by, blockMs, blockLengths } = limit
  return {
    name,
    because,
    own_version: own,
    algorithm,
    mode,
    size,
    /** The most that can be used at one moment; it differs from the size for a token_bucket only. */
    capacity,
    window_ms: span.kind === 'window' ? span.ms : null,
    period: span.kind === 'period' ? span.unit : null,
    by: by.map(partText),
    block_ms: blockMs,
    ...(blockLengths === undefined ? {} : { block_lengths_ms: blockLengths }),
    /** Null where the limit counts by an address and none was named. */
    counts: found === undefined ? null : peeked.map(countReport),
    /** True for the one count of a complete scope; false for all counts within the part of it that was named. */
    exact: found?.exact === true,
    /** Whether there are further counts that are not in the list. */
    more: found !== undefined && (found.keys.length > countsMax || !found.complete),
  }
}

/** A limit with its counts, as `--json` prints it. */
export type LimitReport = Awaited<ReturnType<typeof report>>

/** Reports every count of the asked limits, one after the other. Changes nothing. */
export async function reportLimits(admin: LimitAdmin, asked: AskedLimits, cost: number): Promise<LimitReport[]> {
  const reports: LimitReport[] = []
  for (const explained of asked.limits) reports.push(await report(admin, explained, asked, cost))
  return reports
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const

/** Formats a duration in its two largest units, rounded up to the smaller: `2h 5m`, `41s`, `300ms`. */
export function durationText(ms: number): string {
  if (ms <= 0) return '0s'
  if (ms < 1_000) return `${ms}ms`
  const at = units.findIndex(([unitMs]) => ms >= unitMs)
  const [large, small] = [units[at], units[at + 1]]
  if (large === undefined) return `${ms}ms`
  if (small === undefined) return `${Math.ceil(ms / large[0])}${large[1]}`
  const smalls = Math.ceil(ms / small[0])
  const perLarge = large[0] / small[0]
  const rest = smalls % perLarge
  return `${Math.floor(smalls / perLarge)}${large[1]}${rest === 0 ? '' : ` ${rest}${small[1]}`}`
}

function sizeText({ size, capacity, window_ms, period, algorithm }: LimitReport): string {
  const per = window_ms === null ? `a ${period}` : `in ${durationText(window_ms)}`
  return algorithmFacts[algorithm].hasBurst ? `${size} ${per}, burst ${capacity}` : `${size} ${per}`
}

function stateTexts(limit: LimitReport, count: ReturnType<typeof countReport> | undefined): string[] {
  if (limit.counts === null) return ['?', '?', '?', '', 'counts by address: name it with --ip']
  if (count === undefined) return ['', '', '', '', 'no count yet']
  const { used, remaining, reset_ms, blocked_ms, key } = count
  const blocked = blocked_ms > 0 ? `for ${durationText(blocked_ms)}` : 'no'
  return [String(used), String(remaining), reset_ms === 0 ? 'now' : durationText(reset_ms), blocked, key]
}

/** Formats the limits with their counts as a table, one count a row. */
export function limitTable(limits: readonly LimitReport[]): string {
  const head = ['LIMIT', 'BECAUSE OF', 'ALGORITHM', 'ADMITS', 'USED', 'LEFT', 'FREE IN', 'BLOCKED', 'KEY']
  const rows = limits.flatMap((limit) => {
    const { name, algorithm, mode, because, own_version } = limit
    const why = because.length > 2 ? [...because.slice(0, 2), '…'] : because
    const texts = [
      name,
      `${why.join(', ')}${own_version ? ', own version' : ''}`,
      mode === 'shadow' ? `${algorithm}, shadow` : algorithm,
      sizeText(limit),
    ]
    const counts = limit.counts === null || limit.counts.length === 0 ? [undefined] : limit.counts
    const lines = counts.map((count, at) => [...(at === 0 ? texts : ['', '', '', '']), ...stateTexts(limit, count)])
    return limit.more ? [...lines, ['', '', '', '', '…', '', '', '', 'and more']] : lines
  })
  return textTable([head, ...rows])
}
