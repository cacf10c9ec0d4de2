import { once } from 'node:events'
import { createServer, type OutgoingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { createAuthenticator } from '@weir/identity/authenticate.ts'
import type { Caller } from '@weir/identity/caller.ts'
import { createLivePolicy } from '@weir/ingress/policy-view.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { onTestFinished } from 'vitest'

/** What of a caller a test looks at. */
export interface SeenCaller {
  /** Id and plan of the subject, or why there is none. */
  readonly who: string
  readonly keyId?: string
  /** `header NAME` or `query NAME`. */
  readonly carriedIn?: string
  readonly retryAfterMs?: number
  readonly address: string
}

interface Asking {
  readonly headers?: OutgoingHttpHeaders
  readonly url?: string
  /** Address of this machine that the connection comes from. */
  readonly from?: string
}

/**
 * An authenticator behind a real HTTP server, with time in the test's hands. The policy has the plans `free` and `pro`,
 * the subject `acme` on `pro` with the keys `acme-key` and `old-key`, which has expired, and the identity given.
 */
export async function openIdentity(identity: string) {
  const time = { ms: Date.parse('2026-11-21T12:00:00Z') }
  const authenticator = createAuthenticator({
    clock: { nowMs: () => time.ms },
    elapsedMs: () => time.ms - Date.parse('2026-11-21T00:00:00Z'),
    log: createLogger('test', 'silent'),
  })
  const policyWith = (text: string) => requirePolicy(`${basePolicy}\nidentity: ${text}\n`, 'weir.yaml')
  const policy = createLivePolicy(policyWith(identity))
  const server = createServer(async (incoming, response) => {
    const asked = { headers: incoming.headers, url: incoming.url ?? '', socket: incoming.socket }
    const { view } = policy
    const caller = await authenticator.authenticate(view.policy, asked)
    response.end(JSON.stringify({ ...seen(caller), address: authenticator.addressOf(view.policy, asked) }))
  })
  server.listen(0, '::')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await authenticator.close()
  })
  const { port } = server.address() as AddressInfo

  /** One request over a connection of its own. */
  const ask = async ({ headers = {}, url = '/v1/things', from = '127.0.0.1' }: Asking = {}): Promise<SeenCaller> => {
    const host = from.includes(':') ? '::1' : '127.0.0.1'
    const sent = request({ host, port, path: url, headers, localAddress: from, agent: false }).end()
    const [answer] = await once(sent, 'response')
    return (await json(answer)) as SeenCaller
  }
  return { ask, time, authenticator, policy, replaceIdentity: (text: string) => policy.replace(policyWith(text)) }
}

const basePolicy = `
version: 1
limits: { minute: { algorithm: fixed_window, size: 10, window: 1m } }
plans: { free: { limits: [minute] }, pro: { limits: [] } }
routes: []
upstreams: {}
subjects:
  acme: { plan: pro, keys: [{ sha256: "${sha256('acme-key')}", id: k1 }, { sha256: "${sha256('old-key')}", id: k0, expires: "2026-11-21T11:59:59Z" }] }
`

function seen(caller: Caller): Omit<SeenCaller, 'address'> {
  if (caller.kind === 'unauthenticated' && caller.isUnverifiable === true) return { who: 'unsure' }
  if (caller.kind === 'unauthenticated') {
    return { who: 'unauthenticated', ...(caller.retryAfterMs > 0 ? { retryAfterMs: caller.retryAfterMs } : {}) }
  }
  const { subject, keyId, carriedIn } = caller
  return {
    who: `${subject.id} on ${subject.plan.name}`,
    ...(keyId === '' ? {} : { keyId }),
    ...(carriedIn === undefined ? {} : { carriedIn: `${carriedIn.kind} ${carriedIn.name}` }),
  }
}
