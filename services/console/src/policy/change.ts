import { getChange } from '@weir/api/policy.ts'
import { isUuid } from '@weir/contracts/fields.ts'
import { policyUnavailable } from '@weir/policy-changes/change-problems.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, unknown } from '../http/problems.ts'
import { askAgain, serveQuestion } from '../http/question-failure.ts'
import type { Sources } from '../sources.ts'

/** More than a person reads of one change; a file may have put a million subjects. */
const entitiesMax = 1_000

const unanswered = { what: 'a change could not be read', problem: policyUnavailable(askAgain) }

const bodyOf = (json: string): unknown => (json === '' ? null : JSON.parse(json))

/** `GET /v1/changes/{id}`: what one change has changed, before and after. */
export function registerChange(app: FastifyInstance, { changes: { audit, findChange } }: Sources): void {
  serveQuestion(app, getChange, unanswered, async (request, reply) => {
    const id = request.params.id.toLowerCase()
    const found = isUuid(id) ? await findChange({ id, entitiesMax }) : undefined
    if (found === undefined) {
      const words = audit.has(id)
        ? `The change ${id} is not in weir.policy_history: it is not copied yet, or is older than the history.`
        : 'No change has this id; GET /v1/changes lists all changes.'
      return answerProblem(reply, unknown(words))
    }
    return {
      id,
      at: new Date(found.at_ms).toISOString(),
      ...JSON.parse(found.body),
      entities: found.entities.map(({ kind, name, before, after }) => {
        return { kind, name, before: bodyOf(before), after: bodyOf(after) }
      }),
    }
  })
}
