import type { FastifyInstance } from 'fastify'
import { answer, object, operation, type PageQuery, page, pageOf, pageQuery, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

/** One line of a change's summary. */
export const changeLine = object({
  what: text('put, delete, create, rotate, revoke, reset, unblock'),
  kind: text('of what'),
  name: text('its name; of a key its id'),
})
const entry = object({
  id: text('as in the header Weir-Change of the answer to it'),
  at: text('when, by the clock of the console'),
  by: text('name of the token; `root` for the one of the environment'),
  summary: { type: 'array', items: changeLine, description: 'the first lines of a long change' },
  total: { type: 'integer', description: 'lines in all' },
})

/** `GET /v1/changes`: who changed what and when, newest first. */
export function registerChanges(app: FastifyInstance, { audit }: Ports): void {
  app.get<{ Querystring: PageQuery }>(
    '/v1/changes',
    operation('read', 'changes', 'Who changed what, newest first', {
      query: pageQuery,
      response: { 200: answer('A page', page(entry)), ...problems() },
    }),
    async ({ query: { after, limit } }) => {
      const found = audit.page(after, limit + 1)
      const shown = found.map(({ id, at, by, summary, total }) => ({ id, at, by, summary, total }))
      return pageOf(shown, limit, ({ id }) => id)
    },
  )
}
