import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Client, credentials, loadPackageDefinition, Metadata } from '@grpc/grpc-js'
import { load } from '@grpc/proto-loader'
import { findProgram } from '@weir/local-programs/find-program.ts'
import { envoyProtos } from '../programs/test-programs.ts'

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
  shouldRateLimit(request: RlsRequest, metadata?: Readonly<Record<string, string>>): Promise<RlsResponse>
  close(): void
}

type Answered = (error: Error | null, response: RlsResponse) => void
type RlsStub = Client & {
  shouldRateLimit(request: RlsRequest, metadata: Metadata, options: { deadline: number }, answered: Answered): void
}
type RlsPackage = {
  readonly envoy: {
    readonly service: {
      readonly ratelimit: {
        readonly v3: { readonly RateLimitService: new (address: string, secure: unknown) => RlsStub }
      }
    }
  }
}

/** An answer that takes longer is none. */
const deadlineMs = 20_000

/** What Envoy 1.40 sends in place of the file of the same name, which the protos that can be had do not know yet. */
const newerName = 'envoy/extensions/common/ratelimit/v3/ratelimit.proto'
const newer = `syntax = "proto3";
package envoy.extensions.common.ratelimit.v3;

import "envoy/type/v3/ratelimit_unit.proto";
import "google/protobuf/wrappers.proto";

message RateLimitDescriptor {
  message Entry {
    string key = 1;
    string value = 2;
  }

  message RateLimitOverride {
    uint32 requests_per_unit = 1;
    envoy.type.v3.RateLimitUnit unit = 2;
  }

  repeated Entry entries = 1;
  RateLimitOverride limit = 2;
  google.protobuf.UInt64Value hits_addend = 3;
  bool is_negative_hits = 4;
}
`

async function writeNewer(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-protos-'))
  await mkdir(dirname(join(dir, newerName)), { recursive: true })
  await writeFile(join(dir, newerName), newer)
  return dir
}

/**
 * A client of the rate limit service v3 as Envoy's own rls.proto describes it. `address` is `host:port`, without TLS.
 */
export async function createRlsClient(address: string): Promise<RlsClient> {
  const definition = await load('envoy/service/ratelimit/v3/rls.proto', {
    includeDirs: [
      await writeNewer(),
      await findProgram(envoyProtos, { environment: process.env, tell: () => undefined }),
    ],
    keepCase: true,
    longs: Number,
    enums: String,
    defaults: true,
    arrays: true,
  })
  const { envoy } = loadPackageDefinition(definition) as unknown as RlsPackage
  const stub = new envoy.service.ratelimit.v3.RateLimitService(address, credentials.createInsecure())
  return {
    shouldRateLimit(request, metadata = {}) {
      const sent = new Metadata()
      for (const [name, value] of Object.entries(metadata)) sent.set(name, value)
      return new Promise((resolve, reject) => {
        stub.shouldRateLimit(request, sent, { deadline: Date.now() + deadlineMs }, (error, response) => {
          if (error === null) resolve(response)
          else reject(error)
        })
      })
    },
    close: () => stub.close(),
  }
}
