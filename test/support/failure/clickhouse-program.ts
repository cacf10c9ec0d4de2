/**
 * Runs statements in ClickHouse's engine on the folder of a local server that is stopped: `clickhouse-program.ts FOLDER
 * CONFIGURATION STATEMENT…`. The configuration is a server's file; the local server's own allows nothing beyond its
 * database.
 */
import { openEngine } from '@weir/local-clickhouse/engine/engine.ts'

const [folder = '', configuration, ...statements] = process.argv.slice(2)
const engine = await openEngine(folder, configuration)
for (const statement of statements) {
  using connection = engine.connect()
  await connection.query(statement, 'Null')
}
engine.close()
process.exit(0)
