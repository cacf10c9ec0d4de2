import type { Algorithm, Limit } from './limit.ts'

/** A pause that a caller asks for is at most as long as the longest block. */
export const pauseMsMax = 31 * 86_400_000

/** The name in `deniedBy` of a refusal because the subject has too many markers in Redis. No limit's name begins so. */
export const markersName = '_markers'

/** Whether the limit counts what does not fit: it was used already. */
export const chargesBeyond = ({ onExceed }: Limit): boolean => onExceed.kind === 'charge'

/** Algorithms whose counts may be above the size: a bucket cannot owe, and a log has one entry for each unit. */
const canExceed: readonly Algorithm[] = ['fixed_window', 'sliding_window']

/** Whether the limit counts all: one in shadow too, where requests say their units only at their end. */
export const countsBeyond = (limit: Limit): boolean =>
  chargesBeyond(limit) ||
  (limit.mode === 'shadow' &&
    limit.unit !== undefined &&
    limit.unit !== 'requests' &&
    canExceed.includes(limit.algorithm))

/**
 * Whether the limit denies a request that does not fit. A limit in shadow, or one that degrades or charges it, lets it
 * pass.
 */
export const refuses = ({ mode, onExceed }: Limit): boolean =>
  mode === 'enforce' && onExceed.kind !== 'degrade' && onExceed.kind !== 'charge'

const lets = (limit: Limit): boolean => limit.mode === 'enforce' && !refuses(limit)

/** For how long a caller who exceeds the limit is blocked; 0 for not at all. */
export const shutOutMsOf = (limit: Limit): number => (refuses(limit) ? limit.blockMs : 0)

/** The longest that a block of the limit lasts; 0 if it has none. A limit with `delay` has pauses alone. */
export const blockMsMaxOf = (limit: Limit): number =>
  limit.onExceed.kind === 'delay' && limit.mode === 'enforce' ? pauseMsMax : shutOutMsOf(limit)

/** Names the limits that an allowed request did not fit: the first in force, and the first in shadow. */
export function admittedOver(
  limits: readonly Limit[],
  bits: number,
): { readonly reason: 'ok' | 'limit'; readonly deniedBy: string; readonly shadowedBy: string } {
  if (bits === 0) return { reason: 'ok', deniedBy: '', shadowedBy: '' }
  const over = limits.filter((_, at) => (bits & (1 << at)) !== 0)
  const deniedBy = over.find(lets)?.name ?? ''
  const shadowedBy = over.find(({ mode }) => mode === 'shadow')?.name ?? ''
  return { reason: deniedBy === '' ? 'ok' : 'limit', deniedBy, shadowedBy }
}
