import replyFrom from '@fastify/reply-from'
import { createRouteMatcher, unmatchedRoute } from '@weir/core/policy/match-route.ts'
import type { Route } from '@weir/core/policy/policy.ts'
import { createUpstreamResolver } from '@weir/core/policy/resolve-upstream.ts'
import { type Problem, problemType, sendProblem } from '@weir/runtime/problem.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Gate, Verdict } from '../gate.ts'
import { peerScope } from '../http/caller-address.ts'
import { findKey, readCredential } from '../http/identify.ts'
import { createRequestScopes } from '../http/named-scopes.ts'
import { denialProblem, setVerdictHeaders } from '../http/verdict-reply.ts'
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
  const matchRoute = createRouteMatcher(ports.policy.routes)
  const resolveUpstream = createUpstreamResolver(ports.policy)
  const requestScopes = createRequestScopes(ports.policy)
  await app.register(replyFrom, {
    undici: { connections: upstreamConnectionsMax, headersTimeout: upstreamTimeoutMs, bodyTimeout: upstreamTimeoutMs },
    disableRequestLogging: true,
  })
  // Bodies are never parsed here: they stream through as they come.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))

  const passOn = (request: FastifyRequest, reply: FastifyReply, route: Route, credentialHeader: string) => {
    const upstream = resolveUpstream(request.headers.host ?? '', route)
    if (upstream === undefined) return sendProblem(reply, noUpstream)
    return reply.from(`${upstream.url}${request.raw.url ?? '/'}`, {
      // A decision stands for one request to the upstream; whether to repeat it is the client's to say.
      retryDelay: () => null,
      rewriteRequestHeaders: (_raw, headers) => {
        // The key is ours to know; `Expect: 100-continue` has been answered by this very server.
        const { [credentialHeader]: _key, expect: _expect, ...others } = headers
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
    const path = url.split('?', 1)[0] ?? '/'
    const route = matchRoute(request.method, path) ?? unmatchedRoute
    const ip = peerScope(request.raw.socket)
    const credential = readCredential(request.headers)
    const key = credential === undefined ? undefined : findKey(ports.policy, credential.key)
    const asked = { ip, route, method: method ?? request.method }
    if (key === undefined || credential === undefined) return refuse(reply, gate.refuseStranger(asked))
    const { subject, id: keyId } = key
    const named = requestScopes(request.headers, url)
    const verdict = await gate.decide({
      ...asked,
      ...{ subject, keyId, cost: route.cost, peek: false, named, idempotencyKey: undefined },
    })
    if (!verdict.decision.allowed) return refuse(reply, verdict)
    setVerdictHeaders(reply, verdict)
    return passOn(request, reply, route, credential.header)
  }

  app.all('/*', handle)
  // Methods that Fastify does not list (PROPFIND, …) come here; to an upstream they are as good as any.
  app.setNotFoundHandler(handle)
}
