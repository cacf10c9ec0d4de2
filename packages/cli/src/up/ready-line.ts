import type { DemoSubject } from '@weir/policy/apply-demo.ts'
import type { DataDir } from './data-dir.ts'
import type { Ports } from './ports.ts'
import type { Servers } from './servers.ts'

/**
 * Makes the line that `weir up --json` prints, which is the content of the state file too. It is made again whenever a
 * process id changes. Names are a contract: keys are only added.
 */
export function readyLine(options: {
  readonly data: DataDir
  readonly ports: Ports
  readonly servers: Servers
  readonly demoSubjects: readonly DemoSubject[]
  readonly opsPorts: Readonly<Record<string, number>>
  readonly pids: Readonly<Record<string, number>>
}) {
  const { data, ports, servers, demoSubjects, opsPorts, pids } = options
  const at = (port: number) => `http://127.0.0.1:${port}`
  return {
    ready: true,
    ingress: at(ports.ingress),
    api: at(ports.api),
    /** `host:port` of Envoy's rate limit service. */
    grpc: `127.0.0.1:${ports.grpc}`,
    console: at(ports.console),
    /** Redis, Kafka and ClickHouse; Kafka's address takes readers without a password. */
    ...servers.addresses,
    /** The login (SCRAM-SHA-256) for all else; null where the environment names the Kafka. */
    kafkaUsername: servers.kafkaUsername,
    kafkaPassword: servers.kafkaPassword,
    /** Null where the policy has no subject of that name. */
    demoKey: demoSubjects.includes('demo') ? data.secrets.demoKey : null,
    demoSmallKey: demoSubjects.includes('demo-small') ? data.secrets.demoSmallKey : null,
    adminToken: data.secrets.adminToken,
    state: data.stateFile,
    upstream: at(ports.upstream),
    receiver: at(ports.receiver),
    logs: `${data.dir}/logs`,
    /** Where each service serves `/livez`, `/readyz` and `/metrics`. */
    ops: Object.fromEntries(Object.entries(opsPorts).map(([name, port]) => [name, at(port)])),
    launcher: process.pid,
    pids,
  }
}

/** What `weir up --json` prints. */
export type ReadyLine = ReturnType<typeof readyLine>

/** A screen is seen and copied; the password is in the state file. */
const withoutPassword = (url: string): string => url.replace(/\/\/[^@/]*@/, '//')

/** Formats the ready line for a person: addresses, keys, and four commands to try. */
export function readyScreen(line: ReadyLine): string {
  const rows = [
    ['ingress', line.ingress, line.demoKey === null ? 'in front of your API' : 'in front of the demo API'],
    ['api', line.api, 'POST /v1/check, /v1/authorize for gateways, /openapi.json'],
    ['gRPC', line.grpc, "Envoy's rate limit service"],
    ['console', line.console, 'a page; GET /v1/usage, the admin API, /openapi.json'],
    ['token', line.adminToken, 'opens the console'],
    ['Redis', withoutPassword(line.redis), 'decides'],
    ['Kafka', line.kafka, 'remembers'],
    ['ClickHouse', withoutPassword(line.clickhouse), 'counts'],
    ['demo API', line.upstream, 'answers every path'],
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
      '# a quota of 20 a day: 25 requests are 20 times 200, 5 times 429, and two alerts (80%, 100%)',
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
