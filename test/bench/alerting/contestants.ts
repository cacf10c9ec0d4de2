import { freePorts } from '@weir/runtime/ports.ts'
import { type Program, startProgram } from '../ingress/start-program.ts'

export interface AlertingServers {
  readonly brokers: string
  readonly clickhouseUrl: string
  readonly redisUrl: string
}

export interface Contestant {
  readonly program: Program
  /** Where it tells how many decisions it has read. */
  readonly port: number
}

/** One process of the alerting service. */
export async function startAlerting(servers: AlertingServers): Promise<Contestant> {
  const [port = 0] = await freePorts(1)
  const program = await startProgram({
    file: 'services/alerting/src/main.ts',
    args: [],
    env: {
      WEIR_KAFKA_BROKERS: servers.brokers,
      WEIR_CLICKHOUSE_URL: servers.clickhouseUrl,
      WEIR_REDIS_URL: servers.redisUrl,
      WEIR_OPS_PORT: String(port),
      WEIR_POLICY_FILE: '/nowhere/weir.yaml',
      WEIR_LOG_LEVEL: 'error',
    },
    ready: () => answers(port, '/livez'),
  })
  return { program, port }
}

/** An empty `eachBatch` over the same topic. */
export async function startNothing({ brokers }: AlertingServers): Promise<Contestant> {
  const [port = 0] = await freePorts(1)
  const program = await startProgram({
    file: 'test/bench/alerting/consume-nothing.ts',
    args: [brokers, String(port)],
    env: {},
    ready: () => answers(port, '/'),
  })
  return { program, port }
}

const answers = (port: number, path: string) =>
  fetch(`http://127.0.0.1:${port}${path}`).then(
    ({ ok }) => ok,
    () => false,
  )
