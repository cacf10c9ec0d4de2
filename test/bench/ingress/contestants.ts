import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { readMetric } from '../../support/read-metric.ts'
import { startReferenceServer } from '../envoy-ratelimit/reference-server.ts'
import {
  type Asking,
  askAuthorize,
  askCheck,
  askGrpc,
  askProxy,
  askReference,
  policyText,
  referenceConfig,
  tokenSha256,
} from './caller.ts'
import { answersGrpc } from './drive-grpc.ts'
import { startProgram } from './start-program.ts'

/** What all contestants share. */
export interface SharedServers {
  readonly redis: string
  readonly kafka: string
  /** Origin of what proxies stand in front of. */
  readonly upstream: string
}

export interface Contestant {
  readonly label: string
  readonly origin: string
  readonly asking: Asking
  /** Of the process that is asked. */
  readonly pid: number
  /** Of another that works for it, whose CPU time is the server's as well. */
  readonly behindPid?: number
  /** Where that one is asked. */
  readonly behindOrigin?: string
  readonly usesRedis: boolean
  readonly usesKafka: boolean
  /** Waits until what the requests left to do is done, so that its CPU time counts. */
  settle(): Promise<void>
  /** Requests answered without Redis, which would be cheaper than they should be. */
  countUnavailable(): Promise<number>
  close(): Promise<void>
}

/** As `weir up` has it: this machine is shared, and an answer without Redis would measure nothing. */
const decisionDeadlineMs = 250
/** Records leave within 20 ms; a Kafka that is busy may need seconds. */
const settleDeadlineMs = 10_000

/** One request as the load sends it, a second at most. */
async function answers(origin: string, { method, path, headersOf, bodyOf, messageOf }: Asking): Promise<boolean> {
  if (messageOf !== undefined) return answersGrpc(origin, messageOf(0))
  try {
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: headersOf(0),
      body: bodyOf?.(0) ?? null,
      signal: AbortSignal.timeout(1_000),
    })
    await response.body?.cancel()
    return response.status === 200
  } catch {
    return false
  }
}

const nothing = { settle: async () => {}, countUnavailable: async () => 0, usesRedis: false, usesKafka: false }

/** One of test/bench/servers. */
export interface Plain {
  readonly label: string
  readonly file: string
  readonly asking: Asking
  readonly redis?: string
  readonly upstream?: string
  /** Origin of an ingress that it asks. */
  readonly weir?: string
  /** It takes units ahead there. */
  readonly leases?: boolean
}

export async function startPlain({
  label,
  file,
  asking,
  redis,
  upstream,
  weir,
  leases = false,
}: Plain): Promise<Contestant> {
  const [port = 0] = await freePorts(1)
  const origin = `http://127.0.0.1:${port}`
  const program = await startProgram({
    file: `test/bench/servers/${file}.ts`,
    args: [
      '--port',
      String(port),
      ...(redis === undefined ? [] : ['--redis', redis]),
      ...(upstream === undefined ? [] : ['--upstream', upstream]),
      ...(weir === undefined ? [] : ['--weir', weir]),
      ...(leases ? ['--leases'] : []),
    ],
    env: {},
    ready: () => answers(origin, asking),
  })
  return { ...nothing, ...program, label, origin, asking, usesRedis: redis !== undefined }
}

/** The ingress; `recorded`: as it is, else with nothing recorded. */
interface Weir {
  readonly label: string
  readonly asking: Asking
  readonly recorded: boolean
  readonly policy: string
}

async function startWeir(weir: Weir, servers: SharedServers, dir: string): Promise<Contestant> {
  const { label, asking, recorded, policy } = weir
  const [apiPort = 0, ingressPort = 0, opsPort = 0, grpcPort = 0] = await freePorts(4)
  const doorPort = asking.path.startsWith('/v1/things') ? ingressPort : apiPort
  const origin = `http://127.0.0.1:${asking.messageOf === undefined ? doorPort : grpcPort}`
  const policyFile = join(dir, `${opsPort}.yaml`)
  await writeFile(policyFile, policy)
  const program = await startProgram({
    file: recorded ? 'services/ingress/src/main.ts' : 'test/bench/servers/check-unrecorded.ts',
    args: [],
    env: {
      WEIR_POLICY_FILE: policyFile,
      WEIR_REDIS_URL: servers.redis,
      WEIR_KAFKA_BROKERS: servers.kafka,
      WEIR_API_PORT: String(apiPort),
      WEIR_INGRESS_PORT: String(ingressPort),
      WEIR_GRPC_PORT: String(grpcPort),
      WEIR_OPS_PORT: String(opsPort),
      WEIR_ADMIN_TOKEN_SHA256: tokenSha256,
      WEIR_DECISION_DEADLINE_MS: String(decisionDeadlineMs),
      WEIR_LOG_LEVEL: 'warn',
      WEIR_JOURNAL_DIR: join(dir, `journal-${opsPort}`),
    },
    ready: () => answers(origin, asking),
  })
  const started = { ...nothing, ...program, label, origin, asking, usesRedis: true }
  if (!recorded) return started
  return {
    ...started,
    usesKafka: true,
    async settle() {
      const isEmpty = async () =>
        (await readMetric(`http://127.0.0.1:${opsPort}`, 'weir_journal_records_waiting')) === 0
      if (await waitUntil(isEmpty, { deadlineMs: settleDeadlineMs })) return
      throw new Error(`records still wait for Kafka ${settleDeadlineMs / 1_000} s after the load`)
    },
    countUnavailable: () =>
      readMetric(`http://127.0.0.1:${opsPort}`, 'weir_decision_source_total{source="unavailable"}'),
  }
}

/** A server of test/bench/servers that asks an ingress by @weir/client, and that ingress; with leases of so long. */
export async function startAsking(
  label: string,
  file: string,
  servers: SharedServers,
  dir: string,
  clientLease = '',
): Promise<Contestant> {
  const policy = policyText(2, servers.upstream, { clientLease })
  const behind = await startWeir({ label: 'weir', asking: askCheck, recorded: true, policy }, servers, dir)
  try {
    const leases = clientLease !== ''
    const asked = await startPlain({ label, file, asking: askCheck, weir: behind.origin, leases })
    return {
      ...behind,
      label,
      origin: asked.origin,
      pid: asked.pid,
      behindPid: behind.pid,
      behindOrigin: behind.origin,
      async close() {
        await asked.close()
        await behind.close()
      },
    }
  } catch (error) {
    await behind.close()
    throw error
  }
}

/** `envoyproxy/ratelimit` itself, which records nothing. */
async function startReference(label: string, { redis }: SharedServers): Promise<Contestant> {
  const files = { 'bench.yaml': referenceConfig() }
  const server = await startReferenceServer({ redisUrl: redis, prefix: 'reference:', files })
  const { pid, close } = server
  return { ...nothing, label, origin: `http://${server.grpc}`, asking: askReference, pid, close, usesRedis: true }
}

/** By the names that the report's ratios are made of. */
export type Name = keyof ReturnType<typeof starters>

function starters(servers: SharedServers, dir: string) {
  const { redis, upstream } = servers
  const plain = (label: string, file: string, asking: Asking, uses: Partial<Plain> = {}) => {
    return () => startPlain({ label, file, asking, ...uses })
  }
  const weir = (label: string, asking: Asking, recorded: boolean, limits: 2 | 3 = 2) => {
    return () => startWeir({ label, asking, recorded, policy: policyText(limits, upstream) }, servers, dir)
  }
  const coalesced = (label: string, asking: Asking, limits: 2 | 3 = 2) => {
    const policy = policyText(limits, upstream, { isCoalesced: true })
    return () => startWeir({ label: `${label}, coalesced`, asking, recorded: true, policy }, servers, dir)
  }
  return {
    bare: plain('bare Fastify', 'bare', askCheck),
    oneScript: plain('Fastify, one Lua call', 'one-script', askCheck, { redis }),
    rateLimit: plain('@fastify/rate-limit', 'rate-limit', askCheck, { redis }),
    union: plain('RateLimiterUnion of three', 'union', askCheck, { redis }),
    check: weir('weir check', askCheck, true),
    checkCoalesced: coalesced('weir check', askCheck),
    unrecorded: weir('weir check, unrecorded', askCheck, false),
    checkThree: weir('weir check, three limits', askCheck, true, 3),
    threeCoalesced: coalesced('weir check, three limits', askCheck, 3),
    grpc: weir('weir gRPC, three limits', askGrpc, true, 3),
    grpcCoalesced: coalesced('weir gRPC, three limits', askGrpc, 3),
    reference: () => startReference('envoyproxy/ratelimit, three limits', servers),
    authorize: weir('weir authorize', askAuthorize, true),
    authorizeCoalesced: coalesced('weir authorize', askAuthorize),
    client: () => startAsking('Fastify, weirFastify, weir', 'weir-client', servers, dir),
    httpProxy: plain('http-proxy', 'http-proxy', askProxy, { upstream }),
    limitedProxy: plain('http-proxy, rate-limit', 'http-proxy', askProxy, { redis, upstream }),
    proxy: weir('weir proxy', askProxy, true),
    proxyCoalesced: coalesced('weir proxy', askProxy),
    proxyUnrecorded: weir('weir proxy, unrecorded', askProxy, false),
  }
}

export type Contestants = ReadonlyMap<Name, Contestant>

/** Starts all, each a process of its own; `own` closes what was started even if a later one does not start. */
export async function startContestants(
  servers: SharedServers,
  dir: string,
  own: (one: Contestant) => void,
): Promise<Contestants> {
  const started = new Map<Name, Contestant>()
  const all = starters(servers, dir)
  for (const name in all) {
    if (!isName(name, all)) continue
    const one = await all[name]()
    own(one)
    started.set(name, one)
  }
  return started
}

const isName = (name: string, all: ReturnType<typeof starters>): name is Name => name in all
