import type { ForgottenCount } from '@weir/core/audit/quota.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Redis } from 'ioredis'
import { blockKeyBeside, hashOfKeyPart } from './keys.ts'
import { readScript } from './scripts.ts'

/** Counts of one run of the script, with their blocks well under a millisecond; also checked there. */
const countsPerCallMax = 500

const { source } = readScript('forget')

/** What a count of a calendar quota held, as lua/algorithms/fixed-window.lua stores it; undefined for any other. */
function forgottenOf(limit: Limit | undefined, key: string, value: Buffer | null): ForgottenCount | undefined {
  if (limit?.span.kind !== 'period' || value === null || value.length < 17 || value[0] !== 0x66) return undefined
  const units = value.readDoubleBE(9)
  return units === 0 ? undefined : { count: hashOfKeyPart(key), end_ms: value.readDoubleBE(1), units }
}

/**
 * Removes counts of one subject and limit, with their blocks. `limit` is undefined if the policy has it no longer.
 * Returns how many counts and blocks were there, and the units of calendar quotas: without a record of them, a restore
 * would bring them back.
 */
export async function forgetCounts(
  serverOf: (key: string) => Redis,
  limit: Limit | undefined,
  counts: readonly string[],
) {
  const forgotten: ForgottenCount[] = []
  let removed = 0
  for (let at = 0; at < counts.length; at += countsPerCallMax) {
    const some = counts.slice(at, at + countsPerCallMax)
    const keys = some.flatMap((key) => [key, blockKeyBeside(key)])
    const reply = await serverOf(keys[0] ?? '').callBuffer('eval', source, keys.length, ...keys)
    const [there, ...values] = Array.isArray(reply) ? reply : []
    removed += Number(there)
    for (const [index, key] of some.entries()) {
      const held = forgottenOf(limit, key, values[index] ?? null)
      if (held !== undefined) forgotten.push(held)
    }
  }
  return { removed, forgotten }
}
