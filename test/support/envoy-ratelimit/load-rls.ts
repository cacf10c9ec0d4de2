import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type GrpcObject, loadPackageDefinition } from '@grpc/grpc-js'
import { load } from '@grpc/proto-loader'
import { findProgram } from '@weir/local-programs/find-program.ts'
import { envoyProtos } from '../programs/test-programs.ts'

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

/** The rate limit service v3 as Envoy's own rls.proto describes it; enums are words, a missing message is null. */
export async function loadRls(): Promise<GrpcObject> {
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
  return loadPackageDefinition(definition)
}
