import { type LookupAddress, type LookupAllOptions, lookup as resolveName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, Pool, ProxyAgent, request } from 'undici'

/**
 * Whether an address is somewhere on the public internet. Loopback, private, link-local, metadata, documentation,
 * multicast and reserved ranges are not, nor are IPv4 addresses dressed as IPv6 (mapped, compatible, NAT64, 6to4), nor
 * is any IPv6 outside 2000::/3, the only block that is handed out.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  if (address instanceof ipaddr.IPv6 && ((address.parts[0] ?? 0) & 0xe000) !== 0x2000) return false
  return address.range() === 'unicast'
}

/** Node's own resolver, or a test's. */
type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

/**
 * Returns a lookup that gives a socket only public addresses. It runs at connect time, and the socket gets the checked
 * addresses, so there is no gap between check and use; if one address of several is not public, none is used.
 */
export const createPublicLookup =
  (resolve: Resolve = resolveName): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      const refused = found?.find(({ address }) => !isPublicAddress(address))
      const [first] = found ?? []
      if (error !== null) callback(error, '')
      else if (refused !== undefined || first === undefined) {
        callback(
          new Error(`${hostname} maps to ${refused?.address ?? 'no address'}, which is not a public address`),
          '',
        )
      } else if (options.all === true) callback(null, found)
      else callback(null, first.address, first.family)
    })
  }
/** One request to an address that others have chosen: a policy, a customer. */
export interface OutgoingRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** Whether loopback and private addresses may be reached. */
  readonly allowPrivate: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** The time for the whole request: the name, the connection, the answer to its last byte. */
  readonly deadlineMs: number
  /** Bytes of the answer's body that are read; the connection of a longer one is closed. */
  readonly answerBytesMax: number
}

/** The connections of outgoing requests. */
export type Outgoing = ReturnType<typeof createOutgoing>

/** Returns the URL's host if it is an address: sockets resolve only names. */
function literalAddress(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return /^[\d.]+$|:/.test(host) ? host : undefined
}

/** The signal of a request does not reach the tunnel that is made for it. */
const tunnelMs = 15_000

const proxyTo = (uri: string) =>
  new ProxyAgent({
    uri,
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: tunnelMs }),
  })

/** Names of this machine, which a proxy would resolve to itself. */
const ownName = /^(?:.*\.)?localhost\.?$/

/**
 * Sends requests to addresses that others have chosen. Addresses are checked at the moment of connecting, so that no
 * name can point elsewhere between the check and the use; redirects are not followed, and time and bytes are bounded.
 * @param options.lookup given by tests
 * @param options.proxyUrl returns the proxy to all public addresses, by CONNECT for https; empty for none. The proxy
 * then resolves the names and must check them: only addresses in a URL itself are checked here. Called for each
 * request: another proxy is used from then on.
 */
export function createOutgoing(options: { readonly lookup?: LookupFunction; readonly proxyUrl?: () => string } = {}) {
  const { lookup = createPublicLookup(), proxyUrl = () => '' } = options
  // Connections end with the deadline of their request, which is the shorter bound.
  const open = (url: string) => ({ url, agent: url === '' ? new Agent({ connect: { lookup } }) : proxyTo(url) })
  let toPublic = open(proxyUrl())
  const toAnywhere = new Agent()
  const publicAgent = () => {
    const url = proxyUrl()
    if (url !== toPublic.url) {
      // Requests in flight through the previous proxy still get their answers.
      toPublic.agent.close().catch(() => undefined)
      toPublic = open(url)
    }
    return toPublic.agent
  }
  return {
    /**
     * Returns an answer of any status: a redirect is an answer like any other, and is never followed. Rejects if there
     * is no whole answer in time, or the address must not be reached.
     */
    async send(asked: OutgoingRequest) {
      const { method, url: text, allowPrivate, headers, body, deadlineMs, answerBytesMax } = asked
      const url = new URL(text)
      const literal = literalAddress(url)
      if (!allowPrivate && literal !== undefined && !isPublicAddress(literal)) {
        throw new Error(`${literal} is not a public address, and allowPrivate is not set`)
      }
      if (!allowPrivate && toPublic.url !== '' && ownName.test(url.hostname)) {
        throw new Error(`${url.hostname} is not public, and allowPrivate is not set`)
      }
      const answer = await request(url, {
        method,
        dispatcher: allowPrivate ? toAnywhere : publicAgent(),
        headers: { 'user-agent': 'weir', ...headers },
        body: body ?? null,
        signal: AbortSignal.timeout(deadlineMs),
      })
      return {
        status: answer.statusCode,
        /** Names in lower case; of a repeated header the first. */
        headers: Object.fromEntries(
          Object.entries(answer.headers).map(([name, value]) => [name, [value].flat()[0] ?? '']),
        ),
        ...(await readUpTo(answer.body, answerBytesMax)),
      }
    },
    async close(): Promise<void> {
      // Not close(), which would wait for a tunnel whose request has ended.
      await Promise.all([toPublic.agent.destroy(), toAnywhere.destroy()])
    },
  }
}

/** The first bytes, and whether there were more. Leaving early destroys the stream, and with it the connection. */
async function readUpTo(body: AsyncIterable<Buffer>, bytesMax: number): Promise<{ body: Buffer; isCut: boolean }> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body) {
    parts.push(part)
    bytes += part.length
    if (bytes > bytesMax) return { body: Buffer.concat(parts).subarray(0, bytesMax), isCut: true }
  }
  return { body: Buffer.concat(parts), isCut: false }
}
