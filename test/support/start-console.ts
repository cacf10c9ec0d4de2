import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { endOfFile, keepLog } from './servers/server-logs.ts'
import { answersOk, startProcess } from './start-process.ts'

const main = resolve(import.meta.dirname, '../../services/console/src/main.ts')
const adminToken = 'test-admin-token'

/** What a console answered; `T` is what the test knows of it. */
export interface AdminAnswer<T> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

/** A console process on ports of its own, which can be killed and started again. */
export type RunningConsole = Awaited<ReturnType<typeof startConsole>>

/** Starts it and waits until it is ready. `environment` is added to what it needs to find its servers. */
export async function startConsole(environment: Readonly<Record<string, string>>) {
  const [port, opsPort] = await freePorts(2)
  const logFile = join(tmpdir(), `weir-test-console-${process.pid}-${port}.log`)
  const keepEnd = keepLog('console', () => endOfFile(logFile))
  const [url, ops] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${opsPort}`]
  const whole = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    WEIR_CONSOLE_PORT: String(port),
    WEIR_OPS_PORT: String(opsPort),
    WEIR_ADMIN_TOKEN_SHA256: createHash('sha256').update(adminToken).digest('hex'),
    ...environment,
  }
  const launch = () =>
    startProcess([process.execPath, main], {
      name: 'the console',
      logFile,
      env: whole,
      ready: () => answersOk(`${ops}/readyz`),
    })
  let running = await launch()
  return {
    ops,
    /** What commands need to find it. */
    environment: { WEIR_CONSOLE_URL: url, WEIR_ADMIN_TOKEN: adminToken },
    /** Asks with the token that may do everything. A text is sent as YAML, anything else as JSON. */
    async ask<T>(
      request: string,
      body?: unknown,
      headers: Readonly<Record<string, string>> = {},
    ): Promise<AdminAnswer<T>> {
      const [, method = 'GET', path = ''] = /^(\w+) (.*)$/.exec(request) ?? []
      const isText = typeof body === 'string'
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${adminToken}`,
          ...(body === undefined ? {} : { 'content-type': isText ? 'application/yaml' : 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
        signal: AbortSignal.timeout(60_000),
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, body: JSON.parse(text === '' ? 'null' : text) }
    },
    /** Of the process that runs now. */
    pid: () => running.pid,
    /** Without a chance to finish anything. */
    kill: () => running.end('SIGKILL'),
    async restart() {
      running = await launch()
    },
    /** Everything it has logged. */
    readLog: () => readFile(logFile, 'utf8'),
    async close() {
      await running.end('SIGTERM')
      keepEnd()
      await rm(logFile, { force: true })
    },
  }
}
