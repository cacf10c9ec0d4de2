import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import type { TestProject } from 'vitest/node'
import { claimGiven } from './own-clickhouse.ts'
import { provideServer } from './provide-server.ts'

/** Global set-up: one ClickHouse for the whole tier. Tests use random database names, or take turns. */
export default async (project: TestProject) => {
  const { WEIR_CLICKHOUSE_URL: given } = process.env
  const release = given ? await claimGiven(given) : undefined
  const close = await provideServer(project, clickhouseServer, 'clickhouseUrl', 'WEIR_CLICKHOUSE_URL')
  return release ?? close
}
