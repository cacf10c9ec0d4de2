import { sections } from '@weir/api/policy.ts'
import { parseUsageQuery } from '@weir/api/query/usage-query.ts'
import { search } from '@weir/api/status.ts'
import { isUuid } from '@weir/contracts/fields.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import type { TokenScope } from '@weir/policy/access-token.ts'
import type { FastifyInstance } from 'fastify'
import { timeInId } from '../decisions/decisions.ts'
import { missingScope } from '../http/authorize.ts'
import { answerProblem, policyUnread, usageUnavailable } from '../http/problems.ts'
import { askAgain, serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'

/** A subject or a key that the policy does not have is found by what it asked in these 30 days. */
const seenFrom = 'now-30d'

const unanswered = { what: 'a search could not be completed', problem: usageUnavailable(askAgain) }

/** Whether decisions of the last weeks have this value in a column. */
async function isSeen({ usage, clock }: Sources, reach: Reach, column: 'subject' | 'key_id', value: string) {
  const parsed = parseUsageQuery({ [column]: value, from: seenFrom, step: 'total' }, { nowMs: clock.nowMs() })
  return parsed.kind === 'query' && Number((await usage.askUsageTotals(reach, parsed.query)).count) > 0
}

/** What may have a name: its kind, the scope by which it is read, and whether it is there. */
type Candidate = readonly [kind: string, scope: TokenScope, isThere: () => unknown]

function candidatesOf(sources: Sources, reach: Reach, name: string): readonly Candidate[] {
  const { policy, alerts, decisions, changes } = sources
  const parts = Object.values(sections).filter((kind) => policy.state?.get(kind, name) !== undefined)
  const hasKey = policy.state?.keyOfId(name) !== undefined
  const id = name.toLowerCase()
  const idMs = timeInId(id)
  return [
    ...parts.map((kind): Candidate => [kind, 'read', () => true]),
    ['subject', 'usage', () => !parts.includes('subject') && isSeen(sources, reach, 'subject', name)],
    ['key', 'read', () => hasKey],
    ['key', 'usage', () => !hasKey && isSeen(sources, reach, 'key_id', name)],
    ['decision', 'usage', () => idMs !== undefined && decisions.find(reach, { id, idMs })],
    ['alert', 'read', () => isUuid(id) && alerts.find({ reach, hiddenLimits: [] }, id)],
    ['change', 'read', () => isUuid(id) && (changes.audit.has(id) || changes.findChange({ id, entitiesMax: 1 }))],
  ]
}

/** `GET /v1/search`: everything that has a name or an id, as far as the caller may read it. */
export function registerSearch(app: FastifyInstance, sources: Sources): void {
  serveQuestion(app, search, unanswered, async (request, reply) => {
    const { reach, query } = request
    if (sources.policy.state === undefined) return answerProblem(reply, policyUnread)
    const open = candidatesOf(sources, reach, query.q).filter(([, scope]) => missingScope(request, scope) === undefined)
    const found = await Promise.all(open.map(([, , isThere]) => isThere()))
    const kinds = open.flatMap(([kind], at) => (found[at] === undefined || found[at] === false ? [] : [kind]))
    const isId = (kind: string) => ['decision', 'alert', 'change'].includes(kind)
    return { items: kinds.map((kind) => ({ kind, name: isId(kind) ? query.q.toLowerCase() : query.q })) }
  })
}
