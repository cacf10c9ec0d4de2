import { textTable } from '../text-table.ts'

/** Refusals, as recorded and by the edited policy; null where that is not known. */
interface Refusals {
  readonly before: number
  readonly at_least: number | null
  readonly at_most: number | null
}

/** The console's answer about what an edited policy would have refused (docs/admin-api.md). */
export interface PolicyImpact {
  readonly from: string
  readonly to: string
  readonly complete_through: string | null
  readonly method: 'minutes' | 'replay'
  readonly estimate: boolean
  readonly assumptions: readonly string[]
  readonly requests: number
  readonly subjects: number
  readonly refused: Refusals
  readonly to_refused: number | null
  readonly to_admitted: number | null
  readonly limits: readonly (Refusals & {
    readonly limit: string
    readonly edit: string
    readonly not_estimated: string | null
    readonly subjects: readonly (Refusals & { readonly subject: string })[]
    readonly more_subjects: number
  })[]
}

/** `3`, or `3 to 5` where that is all that is known. */
function edited({ at_least, at_most }: Refusals): string {
  if (at_least === null || at_most === null) return 'not known'
  return at_least === at_most ? String(at_most) : `${at_least} to ${at_most}`
}

/** Subjects that a line has room for. */
const shownMax = 3

function who({ subjects, more_subjects: more }: PolicyImpact['limits'][number]): string {
  const shown = subjects.slice(0, shownMax).map((one) => `${one.subject} ${one.before} → ${edited(one)}`)
  const left = subjects.length - shown.length + more
  return `${shown.join(', ')}${left > 0 ? `, and ${left} more` : ''}`
}

/** Returns a line for each limit: what it refused, what it would have, and whom. */
export function impactTable({ limits, refused }: PolicyImpact): string {
  const rows = limits.map((one) => [one.limit, one.edit, String(one.before), edited(one), who(one)])
  return textTable([
    ['LIMIT', 'EDIT', 'REFUSED', 'WOULD BE', 'WHO'],
    ...rows,
    ['all', '', String(refused.before), edited(refused), ''],
  ])
}

/** Returns what the numbers are of, and what they rest on. */
export function impactNotes(impact: PolicyImpact): readonly string[] {
  const { from, to, method, estimate, requests, subjects, to_refused, to_admitted } = impact
  const counted = impact.complete_through ?? 'unknown'
  const what = `${requests} decisions of ${subjects} ${subjects === 1 ? 'subject' : 'subjects'} from ${from} to ${to}, counted until ${counted}`
  const turned = `${to_refused} of those admitted would be refused, and ${to_admitted} of those refused admitted`
  return [
    `${estimate ? 'Estimate' : 'Exact'}: ${what}.`,
    ...(method === 'replay' ? [`Each was decided again: ${turned}.`] : []),
    ...impact.assumptions,
  ]
}
