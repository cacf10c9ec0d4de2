import { hash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isLoopback } from '@weir/runtime/loopback.ts'
import { badRequest, type Problem, problem } from '@weir/runtime/problem.ts'
import { LRUCache } from 'lru-cache'
import type { FindAgain, FoundCaller } from './caller.ts'

/** A browser that is signed in. */
export interface Session {
  /** What every request but GET carries: a page of somebody else cannot read it. */
  readonly csrf: string
  /** Looks the credential up again: what was revoked meanwhile finds nobody. */
  readonly findAgain: FindAgain
  /** Of the credential, as in `FoundCaller`. */
  readonly sha256: string
  readonly endsMs: number
}

type FoundSession = FoundCaller &
  ({ readonly kind: 'refused' } | { readonly kind: 'caller'; readonly session: Session })

/** Where browsers find this console. */
export interface BrowserOrigin {
  /** `https://weir.example.com`; undefined where only this machine's own browsers are served. */
  readonly publicUrl: URL | undefined
  readonly hasTls: boolean
}

/** A working day; then the browser signs in again. */
const longestMs = 12 * 3_600_000
/** Somebody who left a page open has left the machine. */
const idleMs = 3_600_000
/** About 1 kB each. Beyond it those that rested longest are over. */
const sessionsMax = 10_000
/** Browsers of one credential. Beyond it its oldest session is over, and nobody else's. */
const ownMax = 10

const forged = (detail: string): Problem => problem('csrf', 'Forbidden', 403, detail)
const isOver = problem('unauthorized', 'Unauthorized', 401, 'The session has ended. Sign in again.')

/** The host name of a `Host` header, which may have a port. */
const nameOf = (host: string) => host.replace(/:\d+$/, '')

/** A browser's request, as far as it tells who sent it. */
export interface BrowserRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}

/**
 * Sessions of browsers: a cookie in place of a token. They live in this process, found by the hash of the cookie, and
 * hold what finds the credential again. A cookie counts only in requests that a page of this console sent.
 */
export class Sessions {
  readonly #open: LRUCache<string, Session>
  /** Keys of the open sessions of each credential, the oldest first. */
  readonly #own = new Map<string, Set<string>>()
  readonly #origin: BrowserOrigin
  readonly #nowMs: () => number

  constructor(origin: BrowserOrigin, nowMs: () => number, elapsedMs: () => number = () => performance.now()) {
    this.#origin = origin
    this.#nowMs = nowMs
    this.#open = new LRUCache({
      max: sessionsMax,
      ttl: idleMs,
      updateAgeOnGet: true,
      ttlResolution: 0,
      perf: { now: elapsedMs },
      dispose: ({ sha256 }, key) => {
        const own = this.#own.get(sha256)
        if (own?.delete(key) && own.size === 0) this.#own.delete(sha256)
      },
    })
  }

  get #isSecure(): boolean {
    return this.#origin.hasTls || this.#origin.publicUrl?.protocol === 'https:'
  }

  /** Browsers keep one with `__Host-` from every other host and path, and send it over TLS alone. */
  get #cookie(): string {
    return this.#isSecure ? '__Host-weir' : 'weir'
  }

  /** The cookie's value; undefined where the request has none of this console. */
  #sent({ cookie = '' }: IncomingHttpHeaders): string | undefined {
    const values = cookie.split(/;\s*/).filter((one) => one.startsWith(`${this.#cookie}=`))
    return values[0]?.slice(this.#cookie.length + 1)
  }

  /** The value of `Set-Cookie` that has this session; without one that which deletes it. */
  cookieOf(id?: string): string {
    const more = id === undefined ? '; Max-Age=0' : ''
    return `${this.#cookie}=${id ?? ''}; Path=/; HttpOnly; SameSite=Strict${this.#isSecure ? '; Secure' : ''}${more}`
  }

  /** Opens one for a credential that was accepted; returns it with the cookie's value. */
  open({ findAgain, sha256 }: Pick<Session, 'findAgain' | 'sha256'>): {
    readonly id: string
    readonly session: Session
  } {
    const [id, csrf] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')]
    const session = { csrf, findAgain, sha256, endsMs: this.#nowMs() + longestMs }
    const own = this.#own.get(sha256) ?? new Set<string>()
    const [oldest = ''] = own
    if (own.size >= ownMax) this.#open.delete(oldest)
    const key = hash('sha256', id, 'hex')
    this.#own.set(sha256, own.add(key))
    this.#open.set(key, session)
    return { id, session }
  }

  /** Why no page of this console sent this; undefined for one that did, and for an address that was typed. */
  whyForeign({ method, headers }: BrowserRequest): Problem | undefined {
    const { host = '', 'sec-fetch-site': site = '' } = headers
    const { publicUrl } = this.#origin
    if (host !== publicUrl?.host && !isLoopback(nameOf(host))) {
      const known =
        publicUrl === undefined ? 'on its own machine, or WEIR_CONSOLE_PUBLIC_URL must be set' : publicUrl.origin
      return forged(`This console has a different address for browsers: ${known}.`)
    }
    const isOwn = site === 'same-origin' || (site === 'none' && (method === 'GET' || method === 'HEAD'))
    return isOwn ? undefined : forged('Cookies are accepted only in requests sent by pages of this console.')
  }

  /** Whether a request comes with a session's cookie, be it valid or not. */
  isOf(headers: IncomingHttpHeaders): boolean {
    return this.#sent(headers) !== undefined
  }

  /** The session of a request; undefined where it is over. */
  find(headers: IncomingHttpHeaders): Session | undefined {
    const key = hash('sha256', this.#sent(headers) ?? '', 'hex')
    const session = this.#open.get(key)
    if (session === undefined || session.endsMs > this.#nowMs()) return session
    this.#open.delete(key)
    return undefined
  }

  /** Who sends a request with a session's cookie, or why it is refused. */
  async findCaller(request: BrowserRequest): Promise<FoundSession> {
    const { headers, method } = request
    const refused = (found: Problem): FoundSession => ({ kind: 'refused', problem: found })
    if (headers.authorization !== undefined || headers['x-api-key'] !== undefined) {
      return refused(badRequest('Send only one credential: a session cookie, Authorization or X-API-Key.'))
    }
    const foreign = this.whyForeign(request)
    if (foreign !== undefined) return refused(foreign)
    const session = this.find(headers)
    if (session === undefined) return refused(isOver)
    if (method !== 'GET' && method !== 'HEAD' && headers['x-weir-csrf'] !== session.csrf) {
      return refused(forged('The header X-Weir-CSRF is missing or wrong. Reload the page.'))
    }
    const caller = await session.findAgain()
    if (caller !== undefined) return { ...session, kind: 'caller', caller, session }
    this.end(headers)
    return refused(isOver)
  }

  /** Ends the session of a request. */
  end(headers: IncomingHttpHeaders): void {
    this.#open.delete(hash('sha256', this.#sent(headers) ?? '', 'hex'))
  }
}
