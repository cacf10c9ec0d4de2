import { clickhouseMissing, connectClickhouse } from '@weir/clickhouse/connect.ts'
import { askUsage } from '@weir/clickhouse/usage-queries.ts'
import { systemClock } from '@weir/core/clock.ts'
import { readConfig } from '@weir/runtime/read-config.ts'
import { startService } from '@weir/runtime/start-service.ts'
import { buildApp } from './app.ts'
import { consoleVariables } from './config.ts'

/** Somebody waits for the answer; a question to the rollups takes milliseconds. */
const questionMs = 10_000

await startService(
  'console',
  () => readConfig(consoleVariables, process.env),
  async (config, { run, log, checkReady }) => {
    const clickhouse = await run.own(
      'clickhouse',
      connectClickhouse(config.clickhouseUrl, 'weir-console', questionMs),
      (client) => client.close(),
    )
    checkReady('clickhouse', () => clickhouseMissing(clickhouse))
    const ports = { askUsage: askUsage.bind(undefined, clickhouse), clock: systemClock }
    const app = await run.own('http', buildApp(ports, log, config.adminTokenSha256), (server) => server.close())
    await app.listen({ host: config.consoleHost, port: config.consolePort })
  },
)
