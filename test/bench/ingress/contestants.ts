import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { bodyOf, headers, policyText, tokenSha256 } from './caller.ts'
import { startProgram } from './start-program.ts'

/** The servers that all contestants share. */
export interface SharedServers {
  readonly redis: string
  readonly kafka: string
}

export interface Contestant {
  readonly label: string
  readonly url: string
  readonly pid: number
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
async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { method: 'POST', headers, body: bodyOf(0), signal: AbortSignal.timeout(1_000) })
    await response.body?.cancel()
    return response.status === 200
  } catch {
    return false
  }
}

/** A counter or gauge of the ingress. */
async function readMetric(opsPort: number, name: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/metrics`, { signal: AbortSignal.timeout(5_000) })
  const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(await response.text())?.[1]
  if (found === undefined) throw new Error(`the ingress has no metric ${name}`)
  return Number(found)
}

const nothing = { settle: async () => {}, countUnavailable: async () => 0, usesKafka: false }

async function startPlain(label: string, name: string, { redis }: SharedServers): Promise<Contestant> {
  const [port = 0] = await freePorts(1)
  const url = `http://127.0.0.1:${port}/v1/check`
  const program = await startProgram({
    file: `test/bench/servers/${name}.ts`,
    args: ['--port', String(port), '--redis', redis],
    env: {},
    ready: () => answers(url),
  })
  return { ...nothing, ...program, label, url, usesRedis: name !== 'bare' }
}

async function startWeir(label: string, file: string, servers: SharedServers, dir: string): Promise<Contestant> {
  const [apiPort = 0, ingressPort = 0, opsPort = 0] = await freePorts(3)
  const url = `http://127.0.0.1:${apiPort}/v1/check`
  const policyFile = join(dir, 'weir.yaml')
  await writeFile(policyFile, policyText())
  const program = await startProgram({
    file,
    args: [],
    env: {
      WEIR_POLICY_FILE: policyFile,
      WEIR_REDIS_URL: servers.redis,
      WEIR_KAFKA_BROKERS: servers.kafka,
      WEIR_API_PORT: String(apiPort),
      WEIR_INGRESS_PORT: String(ingressPort),
      WEIR_OPS_PORT: String(opsPort),
      WEIR_ADMIN_TOKEN_SHA256: tokenSha256,
      WEIR_DECISION_DEADLINE_MS: String(decisionDeadlineMs),
      WEIR_LOG_LEVEL: 'warn',
    },
    ready: () => answers(url),
  })
  const weir = { ...nothing, ...program, label, url, usesRedis: true }
  if (!file.startsWith('services/')) return weir
  return {
    ...weir,
    usesKafka: true,
    async settle() {
      const isEmpty = async () => (await readMetric(opsPort, 'weir_records_waiting')) === 0
      if (await waitUntil(isEmpty, { deadlineMs: settleDeadlineMs })) return
      throw new Error(`records still wait for Kafka ${settleDeadlineMs / 1_000} s after the load`)
    },
    countUnavailable: () => readMetric(opsPort, 'weir_decisions_unavailable_total'),
  }
}

/** By the letters that the report's ratios name. */
export interface Contestants {
  readonly bare: Contestant
  readonly oneScript: Contestant
  readonly rateLimit: Contestant
  readonly weir: Contestant
  readonly unrecorded: Contestant
}

/** Starts all, each a process of its own; `own` closes what was started even if a later one does not start. */
export async function startContestants(
  servers: SharedServers,
  dir: string,
  own: (one: Contestant) => void,
): Promise<Contestants> {
  const owned = async (starting: Promise<Contestant>) => {
    const one = await starting
    own(one)
    return one
  }
  return {
    bare: await owned(startPlain('a bare Fastify', 'bare', servers)),
    oneScript: await owned(startPlain('b one Lua call', 'one-script', servers)),
    rateLimit: await owned(startPlain('c @fastify/rate-limit', 'rate-limit', servers)),
    weir: await owned(startWeir('d Weir', 'services/ingress/src/main.ts', servers, dir)),
    unrecorded: await owned(
      startWeir('e Weir, nothing recorded', 'test/bench/servers/check-unrecorded.ts', servers, dir),
    ),
  }
}
