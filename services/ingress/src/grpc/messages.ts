/** The messages of Envoy's rate limit service as @grpc/proto-loader reads and writes them, by the files in proto/. */

/** A call, with one descriptor for each thing to limit. */
export interface RateLimitRequest {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  /** The cost of each descriptor that gives none; 0 if it is not set. */
  readonly hitsAddend: number
}

/** What a gateway says about one request under one of its rules. */
export interface Descriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[]
  readonly limit: { readonly requestsPerUnit: number; readonly unit: number } | null
  /** 0 is a peek: is there capacity? It charges nothing. */
  readonly hitsAddend: { readonly value: number } | null
  /** Its hits were charged before, and not used. */
  readonly isNegativeHits?: boolean
}

/** Envoy's codes of an answer. */
export const codes = { ok: 1, overLimit: 2 } as const
type Code = (typeof codes)[keyof typeof codes]

/** Envoy's units of time by their numbers, which are not in the order of their lengths. */
export const unitNames: readonly string[] = ['', 'second', 'minute', 'hour', 'day', 'month', 'year', 'week']

/** The numbers of these units by their milliseconds. */
export const unitsByMs: ReadonlyMap<number, number> = new Map([
  [1_000, 1],
  [60_000, 2],
  [3_600_000, 3],
  [86_400_000, 4],
  [30 * 86_400_000, 5],
  [365 * 86_400_000, 6],
  [7 * 86_400_000, 7],
])

/** The answer to one descriptor, with its tightest limit. */
export interface DescriptorStatus {
  readonly code: Code
  readonly currentLimit?: { readonly requestsPerUnit: number; readonly unit: number; readonly name: string }
  readonly limitRemaining?: number
  readonly durationUntilReset?: { readonly seconds: number; readonly nanos: number }
}

/** A header that Envoy adds. */
export interface Header {
  readonly key: string
  readonly value: string
}

/** The answer to a call. */
export interface RateLimitResponse {
  readonly overallCode: Code
  /** One for each descriptor, in their order. */
  readonly statuses: readonly DescriptorStatus[]
  readonly responseHeadersToAdd: readonly Header[]
  /** Headers for the upstream. */
  readonly requestHeadersToAdd?: readonly Header[]
  readonly rawBody?: Uint8Array
}
