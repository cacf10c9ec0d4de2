import type { Upstream, UpstreamHeader } from '@weir/policy/policy.ts'
import { readNamedSecret } from '@weir/runtime/named-secret.ts'
import type { Environment } from '@weir/runtime/read-config.ts'
import { withHyphens } from '../../http/client-headers.ts'

/** The headers of an upstream that Weir sets, as names and values in turns. */
export interface SetHeaders {
  /** Those that the client's are replaced by, or removed for. */
  readonly names: ReadonlySet<string>
  readonly pairs: readonly string[]
}

/** A replaced secret is in use after a second. */
const freshMs = 1_000
/** What no header may have: it would begin another one. */
const unsendable = /[^\t -~\x80-\xff]/

/** Reads the headers of upstreams, their secrets once a second at most. */
export class UpstreamHeaders {
  readonly #environment: Environment
  readonly #known = new WeakMap<Upstream, { readonly atMs: number; readonly headers: SetHeaders | undefined }>()

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** Returns undefined where one of its secrets cannot be read. */
  of(upstream: Upstream): SetHeaders | undefined {
    const nowMs = performance.now()
    const known = this.#known.get(upstream)
    if (known !== undefined && nowMs - known.atMs < freshMs) return known.headers
    const headers = this.#read(upstream)
    this.#known.set(upstream, { atMs: nowMs, headers })
    return headers
  }

  #read({ headers = new Map() }: Upstream): SetHeaders | undefined {
    const pairs: string[] = []
    for (const [name, header] of headers) {
      const value = header === null ? null : this.#valueOf(name, header)
      if (value === undefined) return undefined
      if (value !== null) pairs.push(name, value)
    }
    return { names: new Set([...headers.keys()].map(withHyphens)), pairs }
  }

  /** A secret for `authorization` without a scheme is a bearer token. */
  #valueOf(name: string, header: Exclude<UpstreamHeader, null>): string | undefined {
    if (typeof header === 'string') return header
    const { text } = readNamedSecret(this.#environment, header.secretEnv)
    if (text === '' || unsendable.test(text)) return undefined
    return name === 'authorization' && !text.includes(' ') ? `Bearer ${text}` : text
  }
}
