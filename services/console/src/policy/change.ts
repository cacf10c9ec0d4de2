import { isUuid } from '@weir/contracts/fields.ts'
import type { FastifyInstance } from 'fastify'
import { answerProblem, policyUnavailable, unknown } from '../http/problems.ts'
import { orUnavailable } from '../http/question-failure.ts'
import { answer, anyObject, object, operation, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'
import { changeLine } from './changes.ts'

/** More than a person reads of one change; a file may have put a million subjects. */
const entitiesMax = 1_000

const bodyOrNull = (description: string) => ({ ...anyObject, type: ['object', 'null'], description })
const entity = object({
  kind: text('limit, plan, route, price or subject'),
  name: text('its name'),
  before: bodyOrNull('as the change found it; null: it was not there'),
  after: bodyOrNull('as the change left it; null: it was deleted'),
})
const change = object({
  id: text('as in the header Weir-Change of the answer to it'),
  at: text('when, by the clock of the console'),
  by: text('name of the token; `root` for the one of the environment'),
  summary: { type: 'array', items: changeLine, description: 'the first lines of a long change' },
  total: { type: 'integer', description: 'lines in all' },
  entities: { type: 'array', items: entity, description: 'what limits requests and is otherwise now; 1,000 at most' },
})

const bodyOf = (json: string): unknown => (json === '' ? null : JSON.parse(json))

/** `GET /v1/changes/{id}`: what one change has changed, from what to what. */
export function registerChange(app: FastifyInstance, { audit, findChange }: Ports): void {
  app.get<{ Params: { readonly id: string } }>(
    '/v1/changes/:id',
    operation('read', 'changes', 'What one change has changed, from what to what', {
      params: object({ id: text('a UUID, as in `GET /v1/changes`') }),
      response: { 200: answer('The change', change), ...problems(404, 503) },
    }),
    orUnavailable(
      'a change could not be read',
      policyUnavailable('ClickHouse did not answer. Ask again; it is safe to repeat.'),
    )(async (request, reply) => {
      const id = request.params.id.toLowerCase()
      const found = isUuid(id) ? await findChange({ id, entitiesMax }) : undefined
      if (found === undefined) {
        const words = audit.has(id)
          ? `The change ${id} is not in weir.policy_history: it was not copied yet, or was made before there was one.`
          : 'There is no change of this id; GET /v1/changes lists them.'
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
    }),
  )
}
