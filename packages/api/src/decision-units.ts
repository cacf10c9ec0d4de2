import type { Explanation } from './decisions.ts'

const basisWords = { '': '', reported: 'reported by the caller', counted: 'counted by what was seen', bound: 'as held' }

/** Returns what a decision held and used of each unit, null for what is not known, and how that is known. */
export function decisionUnits({ outcome, held, meter, corrections, ...own }: Explanation) {
  const records = [own, ...corrections]
  const names = new Set([held, ...records.map(({ units }) => units ?? {})].flatMap(Object.keys))
  const rows = [...names].map((unit) => {
    const parts = records.flatMap(({ units }) => units?.[unit] ?? [])
    return { unit, held: held[unit] ?? null, used: parts.length === 0 ? null : parts.reduce((a, b) => a + b) }
  })
  const basis = records.map((one) => one.basis ?? '').findLast((one) => one !== '') ?? ''
  if (outcome === 'deny') return { rows, what: 'Asked for', known: 'not used' }
  const what = 'Used'
  if (basis === '' && Object.keys(held).length > 0) return { rows, what, known: 'held, not settled' }
  return { rows, what, known: basis === 'reported' && meter !== '' ? 'reported by the response' : basisWords[basis] }
}
