import type { DemoSubject } from '@weir/policy/apply-demo.ts'
import type { DataDir } from './data-dir.ts'
import type { Ports } from './ports.ts'
import type { Servers } from './servers.ts'

/**
 * The line that `weir up --json` prints, and the content of the state file. Names are a contract: keys are only added.
 */
export interface ReadyLine {
  readonly ready: true
  readonly ingress: string
  readonly api: string
  /** `host:port` of Envoy's rate limit service. */
  readonly grpc: string
  readonly console: string
  readonly redis: string
  /** Without a password, for reading; all else takes the two that follow (SCRAM-SHA-256). */
  readonly kafka: string
  /** Null where the environment names the Kafka. */
  readonly kafkaUsername: string | null
  readonly kafkaPassword: string | null
  readonly clickhouse: string
  /** Null where the policy has no subject of that name. */
  readonly demoKey: string | null
  readonly demoSmallKey: string | null
  readonly adminToken: string
  readonly state: string
  readonly upstream: string
  readonly receiver: string
  readonly logs: string
  /** Where each service tells how it is: /livez, /readyz, /metrics. */
  readonly ops: Readonly<Record<string, string>>
  readonly launcher: number
  readonly pids: Readonly<Record<string, number>>
}

/** Makes the ready line; it is made again whenever a process id changes. */
export function readyLine(options: {
  readonly data: DataDir
  readonly ports: Ports
  readonly servers: Servers
  readonly demoSubjects: readonly DemoSubject[]
  readonly opsPorts: Readonly<Record<string, number>>
  readonly pids: Readonly<Record<string, number>>
}): ReadyLine {
  const { data, ports, servers, demoSubjects, opsPorts, pids } = options
  const at = (port: number) => `http://127.0.0.1:${port}`
  return {
    ready: true,
    ingress: at(ports.ingress),
    api: at(ports.api),
    grpc: `127.0.0.1:${ports.grpc}`,
    console: at(ports.console),
    ...servers.addresses,
    kafkaUsername: servers.kafkaUsername,
    kafkaPassword: servers.kafkaPassword,
    demoKey: demoSubjects.includes('demo') ? data.secrets.demoKey : null,
    demoSmallKey: demoSubjects.includes('demo-small') ? data.secrets.demoSmallKey : null,
    adminToken: data.secrets.adminToken,
    state: data.stateFile,
    upstream: at(ports.upstream),
    receiver: at(ports.receiver),
    logs: `${data.dir}/logs`,
    ops: Object.fromEntries(Object.entries(opsPorts).map(([name, port]) => [name, at(port)])),
    launcher: process.pid,
    pids,
  }
}

/** A screen is seen and copied; who needs the password has the state file. */
const withoutPassword = (url: string): string => url.replace(/\/\/[^@/]*@/, '//')

/** The same for a person: what runs where, the keys, and four commands to try. */
export function readyScreen(line: ReadyLine): string {
  const rows = [
    ['ingress', line.ingress, 'in front of the demo API'],
    ['api', line.api, 'POST /v1/check, /v1/authorize for gateways, /openapi.json'],
    ['gRPC', line.grpc, "Envoy's rate limit service"],
    ['console', line.console, 'GET /v1/usage, the admin API, /openapi.json'],
    ['Redis', withoutPassword(line.redis), 'decides'],
    ['Kafka', line.kafka, 'remembers'],
    ['ClickHouse', withoutPassword(line.clickhouse), 'counts'],
    ['webhooks', line.receiver, 'the demo receiver'],
    ['logs', line.logs, 'one file each'],
  ]
  const table = rows.map(([name = '', where = '', what = '']) => `  ${name.padEnd(11)}${where.padEnd(30)} ${what}`)
  const tries: string[] = []
  if (line.demoKey !== null) {
    tries.push(
      '# a request through the ingress: 200 with RateLimit headers; the 101st in a minute is a 429',
      `curl -i ${line.ingress}/hello -H 'X-API-Key: ${line.demoKey}'`,
    )
  }
  if (line.demoSmallKey !== null) {
    tries.push(
      '# a quota of 20 a day: 25 requests are 20 times 200, 5 times 429, and two alerts (80 %, 100 %)',
      `for i in $(seq 25); do curl -s -o /dev/null -w '%{http_code} ' ${line.ingress}/hello -H 'X-API-Key: ${line.demoSmallKey}'; done; echo`,
    )
  }
  tries.push(
    '# who used what, two seconds later, and the webhooks that the receiver verified',
    `curl -s '${line.console}/v1/usage?by=subject,outcome&step=day' -H 'Authorization: Bearer ${line.adminToken}'`,
    `curl -s ${line.receiver}/deliveries`,
  )
  return ['', 'Weir is up.', '', ...table, '', ...tries, '', 'Ctrl-C stops everything and keeps the data.', ''].join(
    '\n',
  )
}
