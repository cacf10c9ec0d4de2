import replyFrom from '@fastify/reply-from'
import { unmatchedRoute } from '@weir/core/policy/match-route.ts'
import type { Route } from '@weir/core/policy/policy.ts'
import { type Problem, problemType, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Gate, Verdict } from '../gate.ts'
import type { CredentialPlace } from '../http/identify.ts'
import { denialProblem, setVerdictHeaders } from '../http/verdict-reply.ts'
import type { PolicyView } from '../policy-view.ts'
import type { Ports } from '../ports.ts'

/** An upstream that answers nothing for this long counts as gone. */
const upstreamTimeoutMs = 30_000
/** Connections kept to one upstream; more requests than that wait their turn. */
const upstreamConnectionsMax = 256

/** Headers that only Weir speaks: an upstream's own never reach the client in their place. */
const ownHeaders = ['ratelimit', 'ratelimit-policy', 'weir-decision']

const noUpstream: Problem = {
  type: problemType('no-upstream'),
  title: 'No upstream',
  status: 404,
  detail: 'No upstream of the policy answers for this host.',
}

const notAPath: Problem = {
  type: problemType('bad-request'),
  title: 'Bad request',
  status: 400,
  detail: 'The request line must carry a path that begins with a slash.',
}

function upstreamProblem(error: Error & { code?: string; statusCode?: number }): Problem {
  if (error.statusCode === 504 || /TIMEOUT/.test(error.code ?? '')) {
    const detail = `The upstream gave no answer within ${upstreamTimeoutMs / 1000} s.`
    return { type: problemType('upstream-timeout'), title: 'Gateway timeout', status: 504, detail }
  }
  const detail = 'The upstream could not be reached or broke off.'
  return { type: problemType('upstream-unreachable'), title: 'Bad gateway', status: 502, detail }
}

/** The reverse proxy: identify, decide, record, and only then pass on. Paths here are the upstream's, none is ours. */
export async function addProxyRoutes(app: FastifyInstance, ports: Ports, gate: Gate): Promise<void> {
  await app.register(replyFrom, {
    undici: { connections: upstreamConnectionsMax, headersTimeout: upstreamTimeoutMs, bodyTimeout: upstreamTimeoutMs },
    disableRequestLogging: true,
  })
  // Bodies are never parsed here: they stream through as they come.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))

  const passOn = (
    view: PolicyView,
    request: FastifyRequest,
    reply: FastifyReply,
    route: Route,
    carriedIn: CredentialPlace | undefined,
  ) => {
    const upstream = view.resolveUpstream(request.headers.host ?? '', route)
    if (upstream === undefined) return sendProblem(reply, noUpstream)
    return reply.from(`${upstream.url}${request.raw.url ?? '/'}`, {
      // A decision stands for one request to the upstream; whether to repeat it is the client's to say.
      retryDelay: () => null,
      rewriteRequestHeaders: (_raw, headers) => {
        // The key is ours to know; `Expect: 100-continue` has been answered by this very server.
        const { [carriedIn?.name ?? '']: _key, expect: _expect, ...others } = headers
        return others
      },
      rewriteHeaders: (headers) => {
        for (const name of ownHeaders) delete headers[name]
        return headers
      },
      onError: (_same, { error }) => {
        request.log.warn({ err: error, upstream: upstream.name }, 'upstream failed')
        sendProblem(reply, upstreamProblem(error))
      },
    })
  }

  const refuse = (reply: FastifyReply, verdict: Verdict) => {
    setVerdictHeaders(reply, verdict)
    return sendProblem(reply, denialProblem(reply, verdict))
  }

  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    const { method, url = '/' } = request.raw
    if (!url.startsWith('/')) return sendProblem(reply, notAPath)
    const { view } = ports.policy
    const path = url.split('?', 1)[0] ?? '/'
    const route = view.matchRoute(request.method, path) ?? unmatchedRoute
    const origin = { headers: request.headers, url, socket: request.raw.socket }
    const ip = ports.identifier.addressOf(view, origin)
    const asked = { ip, route, method: method ?? request.method }
    const found = ports.identifier.identify(view, origin)
    const caller = found instanceof Promise ? await found : found
    if (caller.kind === 'stranger') {
      return refuse(reply, gate.refuseStranger({ ...asked, retryAfterMs: caller.retryAfterMs }))
    }
    const { subject, keyId, carriedIn } = caller
    const named = view.requestScopes(request.headers, url)
    const verdict = await gate.decide({
      ...asked,
      ...{ view, subject, keyId, cost: route.cost, peek: false, named, idempotencyKey: undefined },
    })
    if (!verdict.decision.allowed) return refuse(reply, verdict)
    setVerdictHeaders(reply, verdict)
    return passOn(view, request, reply, route, carriedIn)
  }

  app.all('/*', handle)
  // Methods that Fastify does not list (PROPFIND, …) come here; to an upstream they are as good as any.
  app.setNotFoundHandler(handle)
}
