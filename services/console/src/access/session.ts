import type { FastifyInstance } from 'fastify'
import { answerRefused } from '../http/authorize.ts'
import type { Caller, CallerFinder } from '../http/caller.ts'
import { answerProblem } from '../http/problems.ts'
import { answer, deleted, object, problems, text } from '../http/schemas.ts'
import type { Session, Sessions } from '../http/sessions.ts'

const signedIn = object({
  by: text('whose credential it is, as in the audit'),
  scopes: { type: 'array', items: { type: 'string' }, description: 'what may be asked and changed' },
  subjects: { type: ['array', 'null'], items: { type: 'string' }, description: 'whose rows may be read; null for all' },
  csrf: text('goes with every request but GET, in X-Weir-CSRF'),
  ends_at: text('RFC 3339; an hour without a request ends it earlier'),
})

const shown = ({ by, scopes, reach }: Caller, { csrf, endsMs }: Session) => ({
  by,
  scopes,
  subjects: reach.subjects ?? null,
  csrf,
  ends_at: new Date(endsMs).toISOString(),
})

/** Of browsers alone: programs send their token with every request. */
const schemaOf = (summary: string, response: object, body?: object) => ({
  schema: { tags: ['session'], security: [], summary, response, ...(body === undefined ? {} : { body }) },
})
/** A token has at most 4,096 characters. */
const bodyBytesMax = 8_192
const credential = { ...text('a token, a portal’s token or a key'), minLength: 1, maxLength: 4_096 }

/** `/session`: a browser signs in with a token or key, asks who it is, and signs out. */
export function registerSession(app: FastifyInstance, sessions: Sessions, findCredential: CallerFinder): void {
  app.post<{ Body: { readonly token: string } }>(
    '/session',
    {
      ...schemaOf('Sign in', { 201: answer('Signed in', signedIn), ...problems() }, object({ token: credential })),
      bodyLimit: bodyBytesMax,
      // Before the body is read: its sender has shown no credential yet.
      onRequest: async (request, reply) => {
        const foreign = sessions.whyForeign(request)
        return foreign && answerProblem(reply, foreign)
      },
    },
    async (request, reply) => {
      const authorization = `Bearer ${request.body.token}`
      const found = await findCredential({ authorization }, request.raw)
      if (found.kind === 'refused') return answerRefused(reply, found)
      sessions.end(request.headers)
      const { id, session } = sessions.open(found)
      request.log.info({ by: found.caller.by }, 'a browser signed in')
      reply.code(201).header('set-cookie', sessions.cookieOf(id))
      return shown(found.caller, session)
    },
  )

  const signedInAnswers = { 200: answer('The session', signedIn), 204: deleted('Nobody is'), ...problems() }
  app.get('/session', schemaOf('Who is signed in', signedInAnswers), async (request, reply) => {
    // No error: a browser that comes for the first time asks this.
    if (!sessions.isOf(request.headers)) return reply.code(204).send()
    const found = await sessions.findCaller(request)
    if (found.kind === 'refused') return answerRefused(reply, found)
    return shown(found.caller, found.session)
  })

  const signedOutAnswers = { 204: deleted('Signed out'), ...problems() }
  app.delete('/session', schemaOf('Sign out', signedOutAnswers), async (request, reply) => {
    const found = await sessions.findCaller(request)
    if (found.kind === 'refused') return answerRefused(reply, found)
    sessions.end(request.headers)
    return reply.code(204).header('set-cookie', sessions.cookieOf()).send()
  })
}
