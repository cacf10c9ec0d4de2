import type { ExplainedLimit } from '@weir/policy/match/explain-limits.ts'
import type { AskedLimits } from '@weir/redis/asked-limits.ts'
import { scopeText } from '@weir/redis/keys.ts'
import type { CountLook, LimitAdmin } from '@weir/redis/limit-admin.ts'

/** Counts of one limit that are looked at; a person reads no longer list. */
const looksMax = 200

/** A limit with its counts, in the names of the wire: what `--json` prints. Keys are only added. */
export interface LimitReport {
  readonly name: string
  readonly because: readonly string[]
  readonly own_version: boolean
  readonly algorithm: string
  readonly mode: string
  readonly size: number
  /** Most that can be used at one moment; differs from the size for a token_bucket only. */
  readonly capacity: number
  readonly window_ms: number | null
  readonly period: string | null
  readonly by: readonly string[]
  readonly block_ms: number
  /** Null where it counts by an address and none was named. */
  readonly counts: readonly CountReport[] | null
  /** Whether this is the one count that was meant; false: those there are, for what was not named of the scope. */
  readonly exact: boolean
  /** Further counts that are not in the list. */
  readonly more: boolean
}

/** One count of a limit, as `--json` prints it. */
export interface CountReport {
  readonly key: string
  readonly scope: string
  readonly used: number
  readonly remaining: number
  readonly reset_ms: number
  readonly blocked_ms: number
  /** What the request would get of this count now; waiting -1 ms: never. */
  readonly admits: boolean
  readonly retry_after_ms: number
}

function countReport({ key, now, asked }: CountLook): CountReport {
  const [state] = now.limits
  return {
    key,
    scope: scopeText(key),
    used: state?.used ?? 0,
    remaining: state?.remaining ?? 0,
    reset_ms: state?.resetMs ?? 0,
    blocked_ms: now.reason === 'blocked' ? now.retryAfterMs : 0,
    admits: asked.allowed,
    retry_after_ms: asked.reason === 'cost_exceeds_limit' ? -1 : asked.retryAfterMs,
  }
}

async function report(
  admin: LimitAdmin,
  { limit, because, own }: ExplainedLimit,
  { scope }: AskedLimits,
  cost: number,
): Promise<LimitReport> {
  const found = await admin.find(limit, scope)
  const keys = found?.keys.slice(0, looksMax) ?? []
  const looks: CountLook[] = []
  for (const key of keys) looks.push(await admin.look(limit, key, scope, cost))
  const { name, algorithm, mode, size, capacity, span, by, blockMs } = limit
  return {
    name,
    because,
    own_version: own,
    algorithm,
    mode,
    size,
    capacity,
    window_ms: span.kind === 'window' ? span.ms : null,
    period: span.kind === 'period' ? span.unit : null,
    by: by.map((part) => ('name' in part ? `${part.kind}:${part.name}` : part.kind)),
    block_ms: blockMs,
    counts: found === undefined ? null : looks.map(countReport),
    exact: found?.exact === true,
    more: found !== undefined && (found.keys.length > looksMax || !found.complete),
  }
}

/** Looks at every count of the asked limits, one after the other. Changes nothing. */
export async function reportLimits(admin: LimitAdmin, asked: AskedLimits, cost: number): Promise<LimitReport[]> {
  const reports: LimitReport[] = []
  for (const explained of asked.limits) reports.push(await report(admin, explained, asked, cost))
  return reports
}
