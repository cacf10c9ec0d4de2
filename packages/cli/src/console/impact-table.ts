import { textTable } from '../text-table.ts'

/** Refusals, as recorded and by the edited policy. */
interface Refusals {
  readonly before: number
  readonly after: number
}

/** The console's answer about what an edited policy would have refused (docs/admin-api.md). */
export interface PolicyImpact {
  readonly from: string
  readonly to: string
  readonly complete_through: string | null
  readonly exact: boolean
  readonly assumptions: readonly string[]
  readonly subjects: number
  readonly decisions: number
  readonly share: number | null
  readonly refused: Refusals
  readonly to_refused: number
  readonly to_admitted: number
  readonly limits: readonly (Refusals & {
    readonly limit: string
    readonly edit: string
    readonly subjects: readonly (Refusals & { readonly subject: string })[]
  })[]
}

/** Subjects that a line has room for. */
const shownMax = 3

function who({ subjects }: PolicyImpact['limits'][number]): string {
  const shown = subjects.slice(0, shownMax).map(({ subject, before, after }) => `${subject} ${before} → ${after}`)
  const left = subjects.length - shown.length
  return `${shown.join(', ')}${left > 0 ? `, and ${left} more` : ''}`
}

/** Returns a line for each limit: what it refused, what it would have, and whom. */
export function impactTable({ limits, refused }: PolicyImpact): string {
  const rows = limits.map((one) => [one.limit, one.edit, String(one.before), String(one.after), who(one)])
  return textTable([
    ['LIMIT', 'EDIT', 'REFUSED', 'WOULD BE', 'WHO'],
    ...rows,
    ['all', '', String(refused.before), String(refused.after), ''],
  ])
}

/** Returns what the numbers are of, and what they rest on. */
export function impactNotes(impact: PolicyImpact): readonly string[] {
  const { from, to, exact, subjects, decisions, share, to_refused, to_admitted } = impact
  const whose = `${subjects} ${subjects === 1 ? 'subject' : 'subjects'}`
  const part = `${((share ?? 0) * 100).toFixed(1)} % of all`
  return [
    `${exact ? 'Exact' : 'Estimate'}: ${decisions} decisions of ${whose}, ${part}, from ${from} to ${to}, counted until ${impact.complete_through ?? 'unknown'}.`,
    `Each was decided again: ${to_refused} of those admitted would be refused, and ${to_admitted} of those refused admitted.`,
    ...impact.assumptions,
  ]
}
