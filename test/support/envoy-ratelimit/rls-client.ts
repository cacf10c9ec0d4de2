import { type Client, credentials, Metadata } from '@grpc/grpc-js'
import { loadRls } from './load-rls.ts'

/** A pair of a descriptor, as Envoy's actions make them. */
export interface Entry {
  readonly key: string
  readonly value?: string
}

export interface Descriptor {
  readonly entries: readonly Entry[]
  readonly limit?: { readonly requests_per_unit: number; readonly unit: string }
  /** As the message has it, `{ value }`: a wrapper, so that 0 differs from none. */
  readonly hits_addend?: { readonly value: number }
  readonly is_negative_hits?: boolean
}

/** `RateLimitRequest`, by the names of the .proto file. */
export interface RlsRequest {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  readonly hits_addend?: number
}

export interface DescriptorStatus {
  readonly code: 'UNKNOWN' | 'OK' | 'OVER_LIMIT'
  /** Null where no limit applied. */
  readonly current_limit: { readonly name: string; readonly requests_per_unit: number; readonly unit: string } | null
  readonly limit_remaining: number
  readonly duration_until_reset: { readonly seconds: number; readonly nanos: number } | null
}

export interface HeaderValue {
  readonly key: string
  readonly value: string
}

/** `RateLimitResponse`, by the names of the .proto file; enums are words, and what was not sent has its default. */
export interface RlsResponse {
  readonly overall_code: 'UNKNOWN' | 'OK' | 'OVER_LIMIT'
  readonly statuses: readonly DescriptorStatus[]
  readonly response_headers_to_add: readonly HeaderValue[]
  readonly request_headers_to_add: readonly HeaderValue[]
  readonly raw_body: Buffer
  readonly dynamic_metadata: unknown
}

export interface RlsClient {
  /** Rejects with grpc-js's ServiceError, whose `code` and `details` say why. */
  shouldRateLimit(
    request: RlsRequest,
    metadata?: Readonly<Record<string, string>>,
    until?: { readonly signal?: AbortSignal; readonly deadlineMs?: number },
  ): Promise<RlsResponse>
  close(): void
}

type Answered = (error: Error | null, response: RlsResponse) => void
type RlsStub = Client & {
  shouldRateLimit(
    request: RlsRequest,
    metadata: Metadata,
    options: { deadline: number },
    answered: Answered,
  ): { cancel(): void }
}
type RlsPackage = {
  readonly envoy: {
    readonly service: {
      readonly ratelimit: {
        readonly v3: { readonly RateLimitService: new (address: string, secure: unknown, options: object) => RlsStub }
      }
    }
  }
}

/** An answer that takes longer is none. */
const longestMs = 20_000

/** Clients of one address share a connection, unless they are to have their own, which is opened again at once. */
const ownConnection = {
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
}

/**
 * A client of the rate limit service v3 as Envoy's own rls.proto describes it. `address` is `host:port`, without TLS.
 */
export async function createRlsClient(address: string, { isAlone = false } = {}): Promise<RlsClient> {
  const { envoy } = (await loadRls()) as unknown as RlsPackage
  const { RateLimitService } = envoy.service.ratelimit.v3
  const stub = new RateLimitService(address, credentials.createInsecure(), isAlone ? ownConnection : {})
  return {
    shouldRateLimit(request, metadata = {}, { signal, deadlineMs = longestMs } = {}) {
      const sent = new Metadata()
      for (const [name, value] of Object.entries(metadata)) sent.set(name, value)
      return new Promise((resolve, reject) => {
        const call = stub.shouldRateLimit(request, sent, { deadline: Date.now() + deadlineMs }, (error, response) => {
          if (error === null) resolve(response)
          else reject(error)
        })
        signal?.addEventListener('abort', () => call.cancel())
      })
    },
    close: () => stub.close(),
  }
}
