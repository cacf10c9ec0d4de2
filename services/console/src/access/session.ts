import { getSession, type Session, signIn, signOut } from '@weir/api/access.ts'
import type { FastifyInstance } from 'fastify'
import { answerRefused } from '../http/authorize.ts'
import type { Caller, CallerFinder } from '../http/caller.ts'
import { answerProblem } from '../http/problems.ts'
import { serve } from '../http/serve.ts'
import type { Session as OpenSession, Sessions } from '../http/sessions.ts'

const shown = ({ by, scopes, reach }: Caller, { csrf, endsMs }: OpenSession, vendor: Session['vendor']): Session => ({
  vendor,
  by,
  scopes,
  subjects: reach.subjects ?? null,
  csrf,
  ends_at: new Date(endsMs).toISOString(),
})

/** A token has at most 4,096 characters. */
const bodyBytesMax = 8_192
/** `/session`: a browser signs in with a token or key, asks who it is, and signs out. */
export function registerSession(
  app: FastifyInstance,
  sessions: Sessions,
  findCredential: CallerFinder,
  vendor: Session['vendor'],
): void {
  serve(
    app,
    signIn,
    async (request, reply) => {
      const authorization = `Bearer ${request.body.token}`
      const found = await findCredential({ authorization }, request.raw)
      if (found.kind === 'refused') return answerRefused(reply, found)
      sessions.end(request.headers)
      const { id, session } = sessions.open(found)
      request.log.info({ by: found.caller.by }, 'browser signed in')
      reply.code(201).header('set-cookie', sessions.cookieOf(id))
      return shown(found.caller, session, vendor)
    },
    {
      bodyLimit: bodyBytesMax,
      // Before the body is read: its sender has shown no credential yet.
      onRequest: async (request, reply) => {
        const foreign = sessions.whyForeign(request)
        return foreign && answerProblem(reply, foreign)
      },
    },
  )

  serve(app, getSession, async (request, reply) => {
    // No error: a browser that comes for the first time asks this.
    if (!sessions.isOf(request.headers)) return reply.code(204).send()
    const found = await sessions.findCaller(request)
    if (found.kind === 'refused') return answerRefused(reply, found)
    return shown(found.caller, found.session, vendor)
  })

  serve(app, signOut, async (request, reply) => {
    const found = await sessions.findCaller(request)
    if (found.kind === 'refused') return answerRefused(reply, found)
    sessions.end(request.headers)
    return reply.code(204).header('set-cookie', sessions.cookieOf()).send()
  })
}
