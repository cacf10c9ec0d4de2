import { count, quantity, wait } from '@weir/core/format.ts'
import { algorithmFacts, countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { partText } from '@weir/core/limits/limit.ts'
import type { ExplainedLimit } from '@weir/policy/match/resolve-limits.ts'
import type { AskedLimits } from '@weir/redis/asked-limits.ts'
import { scopeText } from '@weir/redis/keys.ts'
import type { LimitAdmin, PeekedCount } from '@weir/redis/limit-admin.ts'
import { countCell } from '../terminal/cells.ts'
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
    ...(limit.currency !== undefined && { currency: limit.currency }),
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

function sizeText({ size, capacity, window_ms, period, algorithm, currency }: LimitReport): string {
  if (countsInFlight({ algorithm })) return `${count(size)} at a time`
  const per = window_ms === null ? `a ${period}` : `in ${wait(window_ms)}`
  return algorithmFacts[algorithm].hasBurst
    ? `${count(size)} ${per}, burst ${count(capacity)}`
    : `${quantity(size, currency)} ${per}`
}

function stateTexts(limit: LimitReport, one: ReturnType<typeof countReport> | undefined): string[] {
  if (limit.counts === null) return ['?', '?', '?', '', 'counts requests per IP address: add --ip ADDRESS']
  if (one === undefined) return ['', '', '', '', 'no count yet']
  const { used, remaining, reset_ms, blocked_ms, key } = one
  const blocked = blocked_ms > 0 ? `for ${wait(blocked_ms)}` : 'no'
  const cells = [used, remaining].map((one) => countCell(one, limit.currency))
  return [...cells, reset_ms === 0 ? 'now' : wait(reset_ms), blocked, key]
}

/** Formats the limits with their counts as a table, one count a row. */
export function limitTable(limits: readonly LimitReport[]): string {
  const head = ['LIMIT', 'SOURCE', 'ALGORITHM', 'ADMITS', 'USED', 'LEFT', 'FREE IN', 'BLOCKED', 'KEY']
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
    const lines = counts.map((one, at) => [...(at === 0 ? texts : ['', '', '', '']), ...stateTexts(limit, one)])
    return limit.more ? [...lines, ['', '', '', '', '…', '', '', '', 'and more']] : lines
  })
  return textTable([head, ...rows])
}
