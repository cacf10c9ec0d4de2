/**
 * What requests are refused for: no valid credential (401), a cost that no waiting admits (403), a limit or its block
 * (429), and what could not be checked or recorded (503).
 */
export const refusalKinds = ['unauthorized', 'cost', 'limit', 'unavailable'] as const
/** One of them. */
export type RefusalKind = (typeof refusalKinds)[number]

/** What a refusal's body is: a problem (RFC 9457), an error of a supplier's API, or a message of JSON-RPC. */
export const refusalForms = ['problem', 'openai', 'anthropic', 'jsonrpc', 'tool_result'] as const

/** What a client's program is told, and how; absent for what Weir says. */
export interface RefusalWords {
  /** Absent for the form of the route's meter. */
  readonly as?: (typeof refusalForms)[number]
  /** Whether trying again helps; absent: after at most a minute. */
  readonly retry?: 'after' | 'never'
  /** The error's own name in the form of a supplier. */
  readonly code?: string
  readonly message?: string
}

/** How requests are answered that are refused, through the proxy and to gateways. */
export interface Refusal extends RefusalWords {
  /** A dialect of the rate-limit headers; absent for that of the process. */
  readonly dialect?: 'draft10' | 'draft6' | 'x-ratelimit' | 'none'
  /** 400 to 599; absent for Weir's own. */
  readonly status?: number
  /** Further headers by their names in lower case; none that Weir sets, and none about connections or cookies. */
  readonly setHeaders?: Readonly<Record<string, string>>
  /** As `fillTemplate` takes it; absent for a problem. */
  readonly body?: string
  readonly contentType: string
}

/** Refusals by what requests are refused for. */
export type Refusals = Readonly<Partial<Record<RefusalKind, Refusal>>>
