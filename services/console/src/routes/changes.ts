import type { FastifyInstance } from 'fastify'
import { answer, object, type PageQuery, page, pageQuery, problems, text } from '../http/schemas.ts'
import type { Ports } from '../ports.ts'

const line = object({
  what: text('put, delete, create, rotate, revoke, reset, unblock'),
  kind: text('of what'),
  name: text('its name; of a key its id'),
})
const entry = object({
  id: text('as in the header Weir-Change of the answer to it'),
  at: text('when, by the clock of the console'),
  by: text('name of the token; `root` for the one of the environment'),
  summary: { type: 'array', items: line, description: 'the first lines of a long change' },
  total: { type: 'integer', description: 'lines in all' },
})

/** `GET /v1/changes`: who changed what and when, newest first. */
export function registerChanges(app: FastifyInstance, { audit }: Ports): void {
  app.get<{ Querystring: PageQuery }>(
    '/v1/changes',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['changes'],
        summary: 'Who changed what, newest first',
        querystring: { type: 'object', additionalProperties: false, properties: pageQuery },
        response: { 200: answer('A page', page(entry)), ...problems() },
      },
    },
    async ({ query: { after, limit } }) => {
      const found = audit.page(after, limit + 1)
      const items = found.slice(0, limit).map(({ id, at, by, summary, total }) => ({ id, at, by, summary, total }))
      return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null }
    },
  )
}
