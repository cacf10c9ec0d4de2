import { type ClientHttp2Session, connect } from 'node:http2'
import { resolve } from 'node:path'
import { loadSync } from '@grpc/proto-loader'
import { type Load, type LoadOptions, loadOf } from './drive-load.ts'

/** Envoy has a connection for each of its threads. */
const sessionsMax = 2
/** As of the load over HTTP. */
const timeoutMs = 5_000

const protoFolder = resolve(import.meta.dirname, '../../../services/ingress/src/grpc/proto')
const service = 'envoy.service.ratelimit.v3.RateLimitService'
const callHeaders = {
  ':method': 'POST',
  ':path': `/${service}/ShouldRateLimit`,
  'content-type': 'application/grpc',
  te: 'trailers',
}

/** What stands before a message: that it is not compressed, and its length. */
const prefixBytes = 5
/** `overall_code: OK`, which comes first in an answer. */
const okBytes = Buffer.from([0x08, 0x01])

/** The bytes of a call, made once: a client library would cost more than the servers that are measured. */
function encode(message: object): Buffer {
  const found = loadSync('rls.proto', { includeDirs: [protoFolder] })[service]
  if (found === undefined || 'format' in found) throw new TypeError(`the proto files have no ${service}`)
  const body = found.ShouldRateLimit?.requestSerialize(message)
  if (body === undefined) throw new TypeError(`${service} has no ShouldRateLimit`)
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32BE(body.length, 1)
  return Buffer.concat([prefix, body])
}

/** Asks once; fails for whatever is not admitted. */
function ask(session: ClientHttp2Session, call: Buffer): Promise<void> {
  return new Promise((done, fail) => {
    const stream = session.request(callHeaders)
    let first: Buffer | undefined
    stream.setTimeout(timeoutMs, () => stream.destroy(new Error('no answer in time')))
    stream.on('data', (chunk: Buffer) => {
      first ??= chunk
    })
    stream.once('error', fail)
    stream.once('end', () => {
      if (first?.subarray(prefixBytes, prefixBytes + okBytes.length).equals(okBytes)) done()
      else fail(new Error('a call was not admitted'))
    })
    stream.end(call)
  })
}

async function openSession(origin: string): Promise<ClientHttp2Session> {
  const session = connect(origin)
  await new Promise<void>((done, fail) => session.once('connect', () => done()).once('error', fail))
  return session
}

/** Whether it admits what the load sends. */
export async function answersGrpc(origin: string, message: object): Promise<boolean> {
  let session: ClientHttp2Session | undefined
  try {
    session = await openSession(origin)
    await ask(session, encode(message))
    return true
  } catch {
    return false
  } finally {
    session?.destroy()
  }
}

/** As `driveLoad`, with as many calls under way as there would be connections. */
export async function driveGrpcLoad({ origin, asking, connections, seconds }: LoadOptions): Promise<Load> {
  const sessions = await Promise.all(Array.from({ length: sessionsMax }, () => openSession(origin)))
  const calls = Array.from({ length: connections }, (_, caller) => encode(asking.messageOf?.(caller) ?? {}))
  const tookMs: number[] = []
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1_000
  const callOver = async (call: Buffer, caller: number) => {
    const session = sessions[caller % sessionsMax]
    if (session === undefined) throw new TypeError('no connection')
    for (let askedAt = performance.now(); askedAt < endsAt; askedAt = performance.now()) {
      await ask(session, call)
      tookMs.push(performance.now() - askedAt)
    }
  }
  try {
    await Promise.all(calls.map(callOver))
    return loadOf(tookMs, startedAt, cpuBefore)
  } finally {
    for (const session of sessions) session.destroy()
  }
}
