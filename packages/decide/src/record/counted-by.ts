import type { CountedLimit } from '@weir/contracts/decision.v1.ts'
import type { LimitRecordV1 } from '@weir/contracts/decision-columns.ts'
import type { LimitState } from '@weir/core/limits/decision.ts'
import { type Limit, partText, type ScopePart } from '@weir/core/limits/limit.ts'
import { countedSubject, type ScopeValues, scopeValue } from '@weir/core/limits/limit-store.ts'
import { scopeHash } from '@weir/redis/keys.ts'
import { scopeOf } from '../limits/limit-request.ts'
import type { DecisionRequest } from '../types.ts'

/** The forms in which the addresses of callers may be recorded. */
export const addressForms = ['full', 'prefix', 'hash', 'off'] as const
/** One of `addressForms`. */
export type AddressForm = (typeof addressForms)[number]

/** A caller's IPv4 address ends in a number; IPv6 callers are a /64 already. */
const prefixOf = (address: string) => address.replace(/\.\d+$/, '.0/24')

/** An address as it is recorded; empty for none. */
export function recordedAddress(form: AddressForm, address: string): string {
  if (address === '' || form === 'off') return ''
  if (form === 'full') return address
  return form === 'prefix' ? prefixOf(address) : scopeHash({ kind: 'ip' }, address)
}

/** A header may have kilobytes; longer values are hashed whatever the limit says. */
const plainLengthMax = 128

/** The parts that a record says beyond its subject. */
const isCounted = ({ kind }: ScopePart) => kind !== 'subject' && kind !== 'global'

const countsByMore = ({ by }: Limit) => by.some(isCounted)
const saysMore = (limit: Limit) => limit.level !== undefined || countsByMore(limit)

function byOf(limit: Limit, values: ScopeValues, ip: string): LimitRecordV1['by'] {
  const by: Record<string, string> = {}
  for (const part of limit.by) {
    if (!isCounted(part)) continue
    const name = partText(part)
    const value = part.kind === 'ip' ? ip : scopeValue(part, values, limit.override)
    if (part.kind === 'ip' && value === '') continue
    const isPlain = value === '' || !('name' in part) || (limit.record === 'plain' && value.length <= plainLengthMax)
    by[name] = isPlain ? value : scopeHash(part, value)
  }
  return by
}

/**
 * Returns the states of a decision with what each limit counted by beyond the subject and which ancestor it counted,
 * and the address as it is recorded: empty where no limit counts by it, or none is to be recorded. Nothing is made
 * where no limit counts by more, as nearly always; a hash is made only where one counts by such a value.
 */
export function countedBy(
  ask: DecisionRequest,
  limits: readonly Limit[],
  states: readonly LimitState[],
  form: AddressForm,
): { readonly limits: readonly CountedLimit[]; readonly ip: string } {
  if (!limits.some(saysMore)) return { limits: states, ip: '' }
  const isByAddress = limits.some(({ by }) => by.some(({ kind }) => kind === 'ip'))
  const ip = isByAddress ? recordedAddress(form, ask.ip) : ''
  const values = scopeOf(ask)
  const counted = states.map((state, index) => {
    // Of a decision that Redis did not make, some limits may lack their state.
    const limit = limits[index]?.name === state.name ? limits[index] : limits.find(({ name }) => name === state.name)
    if (limit === undefined || !saysMore(limit)) return state
    const at = limit.level === undefined ? undefined : countedSubject(limit, values)
    return { ...state, by: countsByMore(limit) ? byOf(limit, values, ip) : undefined, at }
  })
  return { limits: counted, ip }
}
