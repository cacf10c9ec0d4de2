import { join } from 'node:path'
import type { Environment } from '@weir/runtime/read-config.ts'
import { clickhouseVariablesFor } from '../find-servers.ts'
import { inProject, projectRoot } from '../project.ts'
import type { DataDir } from './data-dir.ts'
import { sha256Hex } from './data-dir.ts'
import type { ProcessDefinition } from './managed-process.ts'
import type { Ports } from './ports.ts'
import type { Servers } from './servers.ts'

/** A service compiles nothing and waits for no server before it answers; this is generous. */
const startDeadlineMs = 60_000

/** One request, a second at most; anything but 200 is "not yet". */
async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) })
    await response.body?.cancel()
    return response.status === 200
  } catch {
    return false
  }
}

/**
 * Here Redis shares a few cores with Kafka's virtual machine, ClickHouse and whatever else the person runs: it may be
 * kept waiting for longer than a server of its own ever would, and a demo that lets requests through for that would
 * mislead.
 */
const decisionDeadlineMs = 250

/** Short, so that metering resumes soon after a process was killed; long enough for a busy laptop. */
const kafkaSessionMs = 10_000

/** The options with which the services and the demo are started. */
export interface ServiceOptions {
  readonly environment: Environment
  readonly data: DataDir
  readonly ports: Ports
  /** The ops ports by process; every name that begins with ingress is an ingress process. */
  readonly opsPorts: Readonly<Record<string, number>>
  readonly servers: Servers
  readonly policyFile: string
  /** Restart a service when its sources change. */
  readonly watch: boolean
}

const program = (path: string, watch: boolean, ...args: string[]): readonly [string, ...string[]] => [
  process.execPath,
  '--disable-warning=ExperimentalWarning',
  ...(watch ? ['--watch'] : []),
  inProject(path),
  ...args,
]

/** Defines the demo: the small API that it protects, and the receiver of its webhooks. */
export function demoProcess({ ports, data }: ServiceOptions): ProcessDefinition {
  const { upstream, receiver } = ports
  const flags = ['--upstream', String(upstream), '--receiver', String(receiver)]
  return {
    name: 'demo',
    command: program('infra/local/demo/src/main.ts', false, ...flags),
    env: { WEIR_DEMO_WEBHOOK_SECRET: data.secrets.webhookSecret },
    cwd: projectRoot,
    ready: async () =>
      (await answers(`http://127.0.0.1:${upstream}/`)) && (await answers(`http://127.0.0.1:${receiver}/`)),
    startDeadlineMs,
  }
}

/** Defines the processes of the four services; the ingress may have several. */
export function serviceProcesses(options: ServiceOptions): ProcessDefinition[] {
  const { environment, ports, servers, data, policyFile, watch, opsPorts } = options
  const common = {
    WEIR_POLICY_FILE: policyFile,
    ...servers.kafkaVariables,
    WEIR_ADMIN_TOKEN_SHA256: sha256Hex(data.secrets.adminToken),
    WEIR_KAFKA_SESSION_MS: environment.WEIR_KAFKA_SESSION_MS || String(kafkaSessionMs),
  }
  // The addresses hold passwords: each service gets those that it reads. A file is handed on as such, as it is read
  // again when it changes.
  const redisUrl = 'WEIR_REDIS_URL'
  const redis = environment[`${redisUrl}_FILE`] ? {} : { [redisUrl]: servers.addresses.redis }
  const clickhouse = clickhouseVariablesFor(environment, servers.addresses.clickhouse)
  const ingressNames = Object.keys(opsPorts).filter((name) => name.startsWith('ingress'))
  const ingress = {
    ...redis,
    // One folder for all: a process that starts adopts the journals of dead ones.
    WEIR_JOURNAL_DIR: environment.WEIR_JOURNAL_DIR || join(data.dir, 'journal'),
    WEIR_INGRESS_PORT: String(ports.ingress),
    WEIR_API_PORT: String(ports.api),
    WEIR_GRPC_PORT: String(ports.grpc),
    WEIR_DECISION_DEADLINE_MS: environment.WEIR_DECISION_DEADLINE_MS || String(decisionDeadlineMs),
    WEIR_SHARE_PORTS: ingressNames.length > 1 ? 'yes' : 'no',
  }
  const service = (name: string, folder: string, env: Record<string, string>): ProcessDefinition => ({
    name,
    command: program(`services/${folder}/src/main.ts`, watch),
    env: {
      ...common,
      WEIR_OPS_PORT: String(opsPorts[name]),
      WEIR_POLICY_SNAPSHOT: join(data.dir, `policy-${name}.snapshot`),
      ...env,
    },
    cwd: projectRoot,
    ready: () => answers(`http://127.0.0.1:${opsPorts[name]}/readyz`),
    startDeadlineMs,
  })
  return [
    ...ingressNames.map((name) => service(name, 'ingress', ingress)),
    service('metering', 'metering', clickhouse),
    service('alerting', 'alerting', {
      ...redis,
      ...clickhouse,
      WEIR_DEMO_WEBHOOK_SECRET: data.secrets.webhookSecret,
      WEIR_UNSUBSCRIBE_KEY: data.secrets.unsubscribeKey,
      WEIR_CONSOLE_PUBLIC_URL: environment.WEIR_CONSOLE_PUBLIC_URL || `http://127.0.0.1:${ports.console}`,
    }),
    service('console', 'console', {
      ...redis,
      ...clickhouse,
      WEIR_CONSOLE_PORT: String(ports.console),
      WEIR_PORTAL_KEY: data.secrets.portalKey,
      WEIR_INGRESS_PUBLIC_URL: environment.WEIR_INGRESS_PUBLIC_URL || `http://127.0.0.1:${ports.ingress}`,
      WEIR_UNSUBSCRIBE_KEY: data.secrets.unsubscribeKey,
      WEIR_STATUS_URLS: Object.entries(opsPorts)
        .map(([name, port]) => `${name}=http://127.0.0.1:${port}`)
        .join(),
    }),
  ]
}
