import type { Limit } from './limit.ts'

/** A pause that a caller asks for is at most as long as the longest block. */
export const pauseMsMax = 31 * 86_400_000

/** The name in `deniedBy` of a refusal because the subject has too many markers in Redis. No limit's name begins so. */
export const markersName = '_markers'

/** Whether a request that finds no room in the limit is refused by it. A limit in shadow, or one that degrades, lets it pass. */
export const refuses = ({ mode, onExceed }: Limit): boolean => mode === 'enforce' && onExceed.kind !== 'degrade'

const degrades = ({ mode, onExceed }: Limit): boolean => mode === 'enforce' && onExceed.kind === 'degrade'

/** For how long whoever exceeds the limit is shut out by that; 0 for not at all. */
export const shutOutMsOf = (limit: Limit): number => (refuses(limit) ? limit.blockMs : 0)

/** For how long a block of the limit stands at most, whoever has set it; 0 if it has none. With `delay` there are pauses alone. */
export const blockMsMaxOf = (limit: Limit): number =>
  limit.onExceed.kind === 'delay' && limit.mode === 'enforce' ? pauseMsMax : shutOutMsOf(limit)

/** What an admission says of the limits that had no room for it; the first of each kind names it. */
export function admittedOver(
  limits: readonly Limit[],
  bits: number,
): { readonly reason: 'ok' | 'limit'; readonly deniedBy: string; readonly shadowedBy: string } {
  if (bits === 0) return { reason: 'ok', deniedBy: '', shadowedBy: '' }
  const over = limits.filter((_, at) => (bits & (1 << at)) !== 0)
  const deniedBy = over.find(degrades)?.name ?? ''
  const shadowedBy = over.find(({ mode }) => mode === 'shadow')?.name ?? ''
  return { reason: deniedBy === '' ? 'ok' : 'limit', deniedBy, shadowedBy }
}
