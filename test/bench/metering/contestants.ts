import { freePorts } from '@weir/runtime/ports.ts'
import { type Program, startProgram } from '../ingress/start-program.ts'

/** Of metering, with the default session (services/metering/src/block-size.ts). */
const blockBytes = 10_500_000

export interface ConsumerServers {
  readonly brokers: string
  readonly clickhouseUrl: string
}

/** One process of the metering service. */
export async function startMetering({ brokers, clickhouseUrl }: ConsumerServers): Promise<Program> {
  const [port] = await freePorts(1)
  return startProgram({
    file: 'services/metering/src/main.ts',
    args: [],
    env: {
      WEIR_KAFKA_BROKERS: brokers,
      WEIR_CLICKHOUSE_URL: clickhouseUrl,
      WEIR_OPS_PORT: String(port),
      WEIR_LOG_LEVEL: 'error',
    },
    ready: () =>
      fetch(`http://127.0.0.1:${port}/livez`).then(
        ({ ok }) => ok,
        () => false,
      ),
  })
}

/** What one would write first: parses each record, and hands objects to the client. */
const startNaiveWith =
  (...more: readonly string[]) =>
  ({ brokers, clickhouseUrl }: ConsumerServers): Promise<Program> =>
    startProgram({
      file: 'test/bench/metering/naive-consumer.ts',
      args: [brokers, clickhouseUrl, ...more],
      env: {},
      ready: async () => true,
    })

export const startNaive = startNaiveWith()
/**
 * The same, told to fetch in blocks as large as metering's, so that only what is done to a record makes the difference.
 */
export const startNaiveInBlocks = startNaiveWith(String(blockBytes))
