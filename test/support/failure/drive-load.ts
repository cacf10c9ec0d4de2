import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { keyOf, quotaSize, subjectId } from './failure-policy.ts'
import { readLedger } from './ledger.ts'
import { type LoadPlan, type LoadProgress, lastIdPlace, type PlannedConnection } from './load-plan.ts'
import type { Stack } from './stack.ts'

/** A load under way against a stack. */
export type RunningLoad = ReturnType<typeof startLoad>

const nothingYet: LoadProgress = {
  answered: 0,
  decided: 0,
  cutOff: 0,
  undecided: {},
  unrecorded: 0,
  elapsedMs: 0,
  lastDecidedMs: 0,
  lastId: '',
}

/** Of the connections: checks of subjects that are never refused, and the rest as told at their number. */
const connectionCounts = { check: 84, proxy: 12, narrow: 8, unknownKey: 2, quota: 2, held: 6, metered: 6 } as const
/** So often a quota is asked for beyond its size: refusals from memory among them. */
const quotaAsks = quotaSize + 10

function http(method: string, path: string, headers: readonly string[], body = ''): string {
  const length = body === '' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]
  return [`${method} ${path} HTTP/1.1`, 'host: failure.test', ...headers, ...length, '', body].join('\r\n')
}

const check = (subject: string): string =>
  http('POST', '/v1/check', [`x-api-key: ${keyOf(subject)}`], '{"route":"/failure","method":"GET"}')

/** Tokens are held, then settled to fewer, or released; every fifth hold stays. */
function holds(subject: string): string[] {
  const post = (path: string, body: object) =>
    http('POST', `/v1/${path}`, [`x-api-key: ${keyOf(subject)}`], JSON.stringify(body))
  const hold = post('check', { route: '/failure', method: 'GET', units: { tokens: 100 }, settle: '30s' })
  const settle = post('settle', { id: lastIdPlace, units: { tokens: 37 } })
  const release = post('release', { id: lastIdPlace })
  return [hold, settle, hold, settle, hold, release, hold, release, hold]
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

let quotasUsed = 0

/** What the connections of one load send. Every subject of the first kinds belongs to one connection alone. */
function planConnections({ ports, secrets }: Stack, withHolds: boolean) {
  const { check: checks, proxy, narrow, unknownKey, quota, held, metered } = connectionCounts
  const one = (port: number, request: string): PlannedConnection => ({ port, requests: [request], timesEach: 1 })
  const nobody = '{"key":"weir_failure_nobody_0123456789","route":"/failure","method":"GET"}'
  // Fresh quotas for every load; enough for a minute of one connection's turns.
  const quotaSubjects = range(quota * 20).map((index) => subjectId('quota', quotasUsed + index))
  quotasUsed += quotaSubjects.length
  const connections = [
    ...range(checks).map((index) => one(ports.api, check(subjectId('wide', index)))),
    ...range(proxy).map((index) => {
      const key = keyOf(subjectId('wide', checks + index))
      return one(ports.ingress, http('GET', '/hello', [`x-api-key: ${key}`]))
    }),
    ...range(narrow).map((index) => one(ports.api, check(subjectId('narrow', index)))),
    ...range(unknownKey).map(() =>
      one(ports.api, http('POST', '/v1/check', [`x-api-key: ${secrets.adminToken}`], nobody)),
    ),
    ...range(quota).map((index) => ({
      port: ports.api,
      requests: quotaSubjects.filter((_, at) => at % quota === index).map(check),
      timesEach: quotaAsks,
    })),
    ...range(withHolds ? held : 0).map((index) => ({
      port: ports.api,
      requests: holds(subjectId('held', index)),
      timesEach: 1,
    })),
    ...range(withHolds ? metered : 0).map((index) => {
      const key = keyOf(subjectId('metered', index))
      return one(ports.ingress, http('GET', '/metered', [`x-api-key: ${key}`]))
    }),
  ]
  return { connections, quotaSubjects }
}

let loads = 0

/** Starts a load of so many requests a second, of every kind there is; holds and meters where the policy has them. */
export function startLoad(stack: Stack, perSecond: number, withHolds = false) {
  loads += 1
  const ledgerFile = join(stack.dir, `ledger-${loads}`)
  const { connections, quotaSubjects } = planConnections(stack, withHolds)
  const plan: LoadPlan = { ledgerFile, perSecond, connections }
  const program = join(import.meta.dirname, 'load-program.ts')
  const child = spawnBound([process.execPath, '--disable-warning=ExperimentalWarning', program, JSON.stringify(plan)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  let progress = nothingYet
  const lines = createInterface({ input: child.stdout ?? Readable.from([]) })
  lines.on('line', (line) => {
    progress = JSON.parse(line)
  })
  /** Waits until the progress is so, or fails after the deadline with what it is instead. */
  const until = async (what: string, isSo: (progress: LoadProgress) => boolean, deadlineMs: number) => {
    if ((await waitUntil(() => isSo(progress), { deadlineMs })) === true) return
    throw new Error(`${what}: not within ${deadlineMs} ms; the load: ${JSON.stringify(progress)}`)
  }
  return {
    get progress() {
      return progress
    },
    /** Subjects whose quota this load uses up, in this order. */
    quotaSubjects,
    until,
    /** Waits for this time on the load's own clock. */
    forMs(ms: number) {
      const endMs = progress.elapsedMs + ms
      return until(`${ms} ms of load`, ({ elapsedMs }) => elapsedMs >= endMs, ms + 30_000)
    },
    /** Ends it and reads its ledger. */
    async stop() {
      child.stdin?.end()
      const code = await ended
      if (code !== 0) throw new Error(`the load ended with ${code}`)
      return readLedger(ledgerFile)
    },
  }
}
