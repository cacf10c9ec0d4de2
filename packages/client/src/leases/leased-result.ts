import type { CheckResult } from '../check-result.ts'
import type { HeldLease } from './lease-book.ts'

/** The result of a decision that was made with a lease, whose units are gone from it already. */
export function leasedResult(lease: HeldLease, nowMs: number, wallMs: number): CheckResult {
  const goneMs = nowMs - lease.sentMs
  const unused = lease.left * lease.cost
  const limits = lease.limits.map(({ name, size, used, remaining, resetMs }) => ({
    name,
    size,
    used: used - unused,
    remaining: remaining + unused,
    resetMs: Math.max(0, Math.ceil(resetMs - goneMs)),
  }))
  const headers: Record<string, string> = {}
  for (const { name, texts, places } of lease.headers) {
    let text = texts[0] ?? ''
    for (const [at, { kind, limit }] of places.entries()) {
      const { remaining = 0, resetMs = 0 } = limits[limit] ?? {}
      const seconds = Math.ceil(resetMs / 1_000)
      text += kind === 'r' ? remaining : kind === 't' ? seconds : Math.ceil(wallMs / 1_000) + seconds
      text += texts[at + 1] ?? ''
    }
    headers[name] = text
  }
  const plain = { deniedBy: '', retryAfterMs: 0, onExceed: undefined, challenge: undefined, suspended: undefined }
  return { allowed: true, reason: 'ok', id: lease.id, ...plain, limits, headers }
}

/** A refusal that is given again from memory, so much later. */
export function laterRefusal(result: CheckResult, laterMs: number): CheckResult {
  const retryAfterMs = Math.max(0, Math.ceil(result.retryAfterMs - laterMs))
  const retryAfter = String(Math.max(1, Math.ceil(retryAfterMs / 1_000)))
  const limits = result.limits.map((one) => ({ ...one, resetMs: Math.max(0, Math.ceil(one.resetMs - laterMs)) }))
  return { ...result, retryAfterMs, limits, headers: { ...result.headers, 'retry-after': retryAfter } }
}
