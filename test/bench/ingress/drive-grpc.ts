import { resolve } from 'node:path'
import { type Client, credentials, loadPackageDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { type Load, type LoadOptions, loadOf } from './drive-load.ts'

/** Envoy has a connection for each of its threads. */
const channels = 2
/** As of the load over HTTP. */
const timeoutMs = 5_000

const protoFolder = resolve(import.meta.dirname, '../../../services/ingress/src/grpc/proto')
const serviceName = 'envoy.service.ratelimit.v3.RateLimitService'

interface RateLimitClient extends Client {
  shouldRateLimit(
    message: object,
    options: object,
    done: (error: Error | null, answer: { overallCode: string }) => void,
  ): void
}
type RateLimitClientClass = new (address: string, secure: unknown, options: object) => RateLimitClient

/** A connection of its own to Envoy's rate limit service at `host:port`. */
function connectGrpc(address: string): RateLimitClient {
  const options = { longs: Number, enums: String, defaults: true, includeDirs: [protoFolder] }
  const all: object = loadPackageDefinition(loadSync('rls.proto', options))
  const found = serviceName.split('.').reduce<unknown>((at, name) => Reflect.get(Object(at), name), all)
  return new (found as RateLimitClientClass)(address, credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
  })
}

/** Asks once; fails for whatever is not admitted. */
function ask(client: RateLimitClient, message: object): Promise<void> {
  return new Promise((done, fail) => {
    client.shouldRateLimit(message, { deadline: Date.now() + timeoutMs }, (error, answer) => {
      if (error !== null) fail(error)
      else if (answer.overallCode !== 'OK') fail(new Error(`it answered ${answer.overallCode}`))
      else done()
    })
  })
}

/** Whether it admits what the load sends. */
export async function answersGrpc(address: string, message: object): Promise<boolean> {
  const client = connectGrpc(address)
  try {
    await ask(client, message)
    return true
  } catch {
    return false
  } finally {
    client.close()
  }
}

/** As `driveLoad`, with as many calls under way as there would be connections. */
export async function driveGrpcLoad({ origin, asking, connections, seconds }: LoadOptions): Promise<Load> {
  const address = new URL(origin).host
  const clients = Array.from({ length: channels }, () => connectGrpc(address))
  const tookMs: number[] = []
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1_000
  const callOver = async (caller: number) => {
    const client = clients[caller % channels]
    const message = asking.messageOf?.(caller)
    if (client === undefined || message === undefined) throw new TypeError('nothing to call over gRPC')
    for (let askedAt = performance.now(); askedAt < endsAt; askedAt = performance.now()) {
      await ask(client, message)
      tookMs.push(performance.now() - askedAt)
    }
  }
  try {
    await Promise.all(Array.from({ length: connections }, (_, caller) => callOver(caller)))
    return loadOf(tookMs, startedAt, cpuBefore)
  } finally {
    for (const client of clients) client.close()
  }
}
