import type { Breach } from '@weir/core/held/check-held.ts'
import { type Limit, partText } from '@weir/core/limits/limit.ts'
import type { ScopeValues } from '@weir/core/limits/limit-store.ts'
import type { Route } from '@weir/policy/policy.ts'
import type { CountWatch } from './count-watch.ts'
import type { Profile } from './profile.ts'

/** Whether a limit held, in the names of the report. */
interface Verdict {
  readonly verdict: 'held' | 'broken' | 'not known'
  /** Why it is not known; null where it is. */
  readonly why: string | null
  /** The longest time that a request was under way, in which it was decided at some moment. */
  readonly within_ms: number | null
  /** The first proof that it was broken, and how much more it admitted in all. */
  readonly broken: {
    readonly at: string
    readonly scope: string
    readonly used: number
    readonly cost: number
    readonly counts: number
    readonly excess_requests: number
    readonly excess_units: number
  } | null
}

/** Why the load cannot know whether a limit held, whatever the answers are; undefined where it can. */
export function whyUnknown({ mode, onExceed, lease, by }: Limit, routes: ReadonlySet<Route>, via: Profile['via']) {
  if (mode === 'shadow') return 'it is in shadow, which answers do not show'
  if (onExceed.kind === 'degrade') return 'requests beyond it pass (onExceed: degrade)'
  if (lease > 0) return 'processes take its units beforehand (lease)'
  const unknown = by.find((part) => 'name' in part)
  if (unknown !== undefined) return `it counts by ${partText(unknown)}`
  if (via !== 'proxy') return undefined
  const all = [...routes]
  if (all.some(({ refundOn }) => refundOn !== undefined)) return 'routes give units back (refundOn)'
  if (all.some(({ costFrom }) => costFrom !== undefined)) return 'requests say their own cost'
  return undefined
}

const shareText = (share: number) => `${(share * 100).toFixed(1)}%`

const notKnown = (why: string): Verdict => ({ verdict: 'not known', why, within_ms: null, broken: null })

const scopeTextOf = ({ by }: Limit, { subject, route, method }: ScopeValues): string => {
  const values: Readonly<Record<string, string>> = { subject, key: subject, route, method }
  return by.flatMap(({ kind }) => (values[kind] === undefined ? [] : [`${kind} ${values[kind]}`])).join(', ')
}

/** Checks what is known of a limit from all of its counts. */
export function verdictOf(
  limit: Limit,
  counts: readonly CountWatch[],
  why: string | undefined,
  via: Profile['via'],
): Verdict {
  if (why !== undefined) return notKnown(why)
  if (counts.length === 0) return notKnown('no answer to an admitted request named it')
  let [withinMs, broken, requests, units] = [0, 0, 0, 0]
  let first: { readonly breach: Breach; readonly scope: ScopeValues } | undefined
  let unclear: string | undefined
  for (const count of counts) {
    const found = count.check()
    if (typeof found === 'string') {
      unclear ??= found
      continue
    }
    withinMs = Math.max(withinMs, found.withinMs)
    const { breach } = found
    if (breach === undefined) continue
    broken += 1
    requests += breach.requests
    units += breach.units
    if (first === undefined || breach.atMs < first.breach.atMs) first = { breach, scope: count.scope }
  }
  if (first === undefined) {
    const without = counts.reduce((sum, { uncounted }) => sum + uncounted, 0)
    if (without > 0) {
      const all = counts.reduce((sum, one) => sum + one.requests, without)
      return notKnown(`${without} of ${all} (${shareText(without / all)}) were admitted without Redis, not counted`)
    }
    return unclear === undefined ? held(withinMs) : notKnown(unclear)
  }
  // Only the check API says that a decision was made without Redis.
  if (via !== 'check' && limit.onUnavailable === 'local')
    return notKnown('it admitted more than its size, which it may while Redis is away (onUnavailable: local)')
  const { atMs, used, cost } = first.breach
  const at = new Date(atMs).toISOString()
  const excess = { excess_requests: requests, excess_units: units }
  const proof = { at, scope: scopeTextOf(limit, first.scope), used, cost, counts: broken, ...excess }
  return { verdict: 'broken', why: null, within_ms: withinMs, broken: proof }
}

const held = (withinMs: number): Verdict => ({ verdict: 'held', why: null, within_ms: withinMs, broken: null })
