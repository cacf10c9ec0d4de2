import { listChanges } from '@weir/api/policy.ts'
import type { FastifyInstance } from 'fastify'
import { pageOf } from '../http/page.ts'
import { serve } from '../http/serve.ts'
import type { Sources } from '../sources.ts'

/** `GET /v1/changes`: who changed what and when, newest first. */
export function registerChanges(app: FastifyInstance, { changes: { audit } }: Sources): void {
  serve(app, listChanges, async ({ query: { after, limit } }) => {
    const found = audit.page(after, limit + 1)
    const shown = found.map(({ id, at, by, summary, total }) => ({ id, at, by, summary, total }))
    return pageOf(shown, limit, ({ id }) => id)
  })
}
