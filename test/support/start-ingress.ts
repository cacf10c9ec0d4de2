import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { endOfFile, keepLog } from './servers/server-logs.ts'
import { answersOk, startProcess } from './start-process.ts'

/** An ingress process as a service manager would run it, on ports of its own. */
export type RunningIngress = Awaited<ReturnType<typeof startIngress>>

const main = resolve(import.meta.dirname, '../../services/ingress/src/main.ts')
/** Starts it and waits until it is ready. `environment` is added to what it needs to find its servers. */
export async function startIngress(environment: Readonly<Record<string, string>>) {
  const [proxyPort, apiPort, opsPort, grpcPort] = await freePorts(4)
  const logFile = join(tmpdir(), `weir-test-ingress-${process.pid}-${apiPort}.log`)
  const keepEnd = keepLog('ingress', () => endOfFile(logFile))
  const journalDir = join(tmpdir(), `weir-test-journal-${process.pid}-${apiPort}`)
  const ops = `http://127.0.0.1:${opsPort}`
  const running = await startProcess([process.execPath, main], {
    name: 'the ingress',
    logFile,
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      WEIR_INGRESS_PORT: String(proxyPort),
      WEIR_API_PORT: String(apiPort),
      WEIR_GRPC_PORT: String(grpcPort),
      WEIR_OPS_PORT: String(opsPort),
      WEIR_ADMIN_TOKEN_SHA256: '0'.repeat(64),
      // The machine is shared with everything else that is tested: a late answer of Redis is no outage here.
      WEIR_DECISION_DEADLINE_MS: '2000',
      WEIR_JOURNAL_DIR: journalDir,
      WEIR_JOURNAL_EPHEMERAL: '1',
      ...environment,
    },
    ready: () => answersOk(`${ops}/readyz`),
  })
  return {
    proxy: `http://127.0.0.1:${proxyPort}`,
    api: `http://127.0.0.1:${apiPort}`,
    /** `host:port`. */
    grpc: `127.0.0.1:${grpcPort}`,
    ops,
    pid: running.pid,
    /** What it writes; removed at its end. */
    logFile,
    /** Ends it as a service manager would, and waits until it is gone. */
    async close() {
      await running.end('SIGTERM')
      keepEnd()
      await rm(logFile, { force: true })
      await rm(journalDir, { recursive: true, force: true })
    },
  }
}
