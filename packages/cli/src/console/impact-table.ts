import type { Impact } from '@weir/api/policy.ts'
import { countCell, momentCell } from '../terminal/cells.ts'
import { textTable } from '../text-table.ts'

/** Subjects that a line has room for. */
const shownMax = 3

function who({ subjects }: Impact['limits'][number]): string {
  const shown = subjects
    .slice(0, shownMax)
    .map(({ subject, before, after }) => `${subject} ${countCell(before)} → ${countCell(after)}`)
  const left = subjects.length - shown.length
  return `${shown.join(', ')}${left > 0 ? `, and ${left} more` : ''}`
}

/** Returns a line for each limit: what it refused, what it would have, and whom. */
export function impactTable({ limits, refused }: Impact): string {
  const rows = limits.map((one) => [one.limit, one.edit, countCell(one.before), countCell(one.after), who(one)])
  return textTable([
    ['LIMIT', 'EDIT', 'REFUSED', 'WOULD BE', 'WHO'],
    ...rows,
    ['all', '', countCell(refused.before), countCell(refused.after), ''],
  ])
}

/** Returns what the numbers are of, and what they rest on. */
export function impactNotes(impact: Impact): readonly string[] {
  const { from, to, exact, subjects, decisions, share, to_refused, to_admitted } = impact
  const whose = `${subjects} ${subjects === 1 ? 'subject' : 'subjects'}`
  const part = `${((share ?? 0) * 100).toFixed(1)}% of all`
  return [
    `${exact ? 'Exact' : 'Estimate'}: ${countCell(decisions)} decisions of ${whose}, ${part}, from ${momentCell(from)} to ${momentCell(to)}, counted until ${momentCell(impact.complete_through, 'unknown')}.`,
    `Each was decided again: ${to_refused} of those admitted would be refused, and ${to_admitted} of those refused admitted.`,
    ...impact.assumptions,
  ]
}
