import { html } from '../html.ts'
import { setParams, useLocation } from '../location.ts'
import { Field } from '../parts/field.ts'
import { OwnAlerts } from '../parts/own-alerts.ts'
import { OwnLimits } from '../parts/own-limits.ts'
import { RunningMonth } from '../parts/quote.ts'
import { AlertsOf } from '../parts/subject-lists.ts'
import { SubjectTree, useTree } from '../parts/subject-tree.ts'
import { SubjectUse } from '../parts/subject-use.ts'
import { DecisionList } from './decisions.ts'

/** A customer's own page: what it used, what is left, what was refused, what it was told and billed. */
export function MePage({ subjects }: { readonly subjects: readonly string[] }) {
  const given = useLocation().params.get('of') ?? ''
  const id = subjects.includes(given) ? given : (subjects[0] ?? '')
  const tree = useTree(id)
  const all = Object.fromEntries(subjects.map((one) => [one, one]))
  return html`
    <div class="head">
      <h1>${id}</h1>
      ${subjects.length > 1 && html`<${Field} isTool label="Subject" options=${all} value=${id} onValue=${(one: string) => setParams({ of: one })} />`}
    </div>
    <${OwnLimits} id=${id} key=${id} />
    ${tree.isAbove !== undefined && html`<${SubjectUse} id=${id} isOwn isAbove=${tree.isAbove} key=${id} />`}
    <${SubjectTree} tree=${tree} />
    <${RunningMonth} id=${id} />
    <${OwnAlerts} id=${id} />
    <${AlertsOf} id=${id} isOwn />
    <${DecisionList} title="Refusals" rowsMax=${15} fixed=${{ outcome: 'deny', subject: id }} />
  `
}
