import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { createLogger } from '@weir/runtime/logger.ts'
import { createRun } from '@weir/runtime/run.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { directoryHolder, openEngine } from './engine/engine.ts'
import { EngineMissing } from './engine/native.ts'
import { createHttpServer, type RequestEnd } from './http/http-server.ts'
import { poolThreads, QueryServer } from './query/query-server.ts'

/** How long running statements may go on after a signal; the whole stop has 20 s. */
const finishMs = 10_000

const usage =
  'usage: main.ts --port PORT --path DIRECTORY [--host ADDRESS] [--name NAME] [--password-file FILE] [--users-file FILE]'

/** Reads the command line. Throws an error that says what is wrong with it. */
function readFlags(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string', default: '8123' },
      host: { type: 'string', default: '127.0.0.1' },
      // By which requests come, where that is not its address.
      name: { type: 'string' },
      path: { type: 'string' },
      'password-file': { type: 'string' },
      'users-file': { type: 'string' },
    },
  })
  const { host, name = host, path, 'password-file': passwordFile, 'users-file': usersFile } = values
  const port = Number(values.port)
  if (!/^\d+$/.test(values.port) || port > 65_535) throw new Error(`--port ${values.port} is no port`)
  if (!path) throw new Error('--path is missing')
  return { port, host, name, path, passwordFile, usersFile }
}

function refuse(problem: string, exitCode: number): never {
  process.stderr.write(`clickhouse: ${problem}\n`)
  process.exit(exitCode)
}

function listen(http: Server, port: number, host: string): Promise<void> {
  return new Promise((resolved, rejected) => {
    http.once('error', rejected)
    http.listen(port, host, () => resolved())
  })
}

async function stop(http: Server, server: QueryServer): Promise<void> {
  http.close()
  http.closeIdleConnections()
  await waitUntil(() => server.runningCount === 0, { deadlineMs: finishMs })
  await server.stopRunning()
  http.closeAllConnections()
  if (server.runningCount > 0) return // Closing the engine under them would end in an abort; the exit does it.
  server.engine.close()
}

// The pool starts with its first use, which is later than this line.
process.env.UV_THREADPOOL_SIZE ??= String(poolThreads)
let flags: ReturnType<typeof readFlags>
try {
  flags = readFlags(process.argv.slice(2))
} catch (error) {
  refuse(`${(error as Error).message}\n${usage}`, 2)
}
const { port, host, name, passwordFile, usersFile } = flags
const path = resolve(flags.path)

const holder = directoryHolder(path)
if (holder !== undefined) {
  refuse(`the data directory ${path} is in use by process ${holder}; stop it, or give another directory with --path`, 1)
}
const log = createLogger('clickhouse', 'info')
const logEnd = (end: RequestEnd) => {
  if (end.code === undefined) log.debug(end, 'query')
  else log.info(end, 'query failed')
}
const { http, serve } = createHttpServer(logEnd)
await listen(http, port, host).catch((error: NodeJS.ErrnoException) => {
  const reason =
    error.code === 'EADDRINUSE'
      ? 'is in use by another program; give another with --port'
      : `cannot be used (${error.message})`
  refuse(`port ${port} on ${host} ${reason}`, 1)
})
const engine = await openEngine(path, usersFile).catch((error: Error) =>
  refuse(
    error instanceof EngineMissing
      ? `the engine for ${process.platform} ${process.arch} is not installed (${error.message}). Name a ClickHouse that runs in WEIR_CLICKHOUSE_URL, or use docker compose up`
      : `the data directory ${path} cannot be opened (${error.message}); another process may hold it`,
    1,
  ),
)
const server = await QueryServer.open(engine, path).catch((error: Error) => refuse(error.message, 1))
const password = passwordFile === undefined ? '' : readFileSync(passwordFile, 'utf8').trimEnd()

const run = createRun(log)
await run.own('http', http, () => stop(http, server))
serve({ server, password, host: name })
log.info({ host, port, path, version: engine.facts.version }, 'listening')
const { exitCode } = await run.untilStopped()
process.exit(exitCode)
