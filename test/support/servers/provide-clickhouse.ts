import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import type { TestProject } from 'vitest/node'
import { provideServer } from './provide-server.ts'

/** Global set-up: one ClickHouse for the whole tier. Tests use random database names. */
export default (project: TestProject) =>
  provideServer(project, clickhouseServer, 'clickhouseUrl', 'WEIR_CLICKHOUSE_URL')
