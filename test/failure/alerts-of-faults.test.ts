import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join, resolve } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { readMarkdown } from '../repo/rules/markdown.ts'
import { failurePolicy, keyOf, subjectId } from '../support/failure/failure-policy.ts'
import { fastRules } from '../support/failure/fast-rules.ts'
import { mountJournalDisk } from '../support/failure/journal-disk.ts'
import { type Prometheus, startPrometheus } from '../support/failure/prometheus.ts'
import { type Stack, startStack } from '../support/failure/stack.ts'
import { type SteadyLoad, startSteadyLoad } from '../support/steady-load.ts'

/** Whether something is slow is a matter of what else this machine does: on a busy one these fire at all times. */
const alerts = 'ALERTS{alertname!~"RedisSlow|RedisScriptSlow|JournalDiskSlow|EventLoopBusy",slo!="quick"}'
/** Whether something is late, too: these end, and count only where the runbook names them. */
const lateness = /^SloBurns\w+ (?:fresh|alerted|delivered)$/
/** What the runbook says may fire or not: it depends on what was under way. */
const perhaps = /, perhaps `(\w+)`/g
/** The furthest that a rule looks back to compare: a fault that came before it had a value could not be unusual. */
const compared = fastRules('weir:denied:ratio_rate5m offset 1d >= 0')
/** Longer than the thresholds of a minute with what comes after them. */
const faultSeconds = 90
/** Several times what the journal's bound of 32 MiB leaves of it. */
const diskMegabytes = 48
/** What the dead one gets late is to be a small part of all deliveries, as where there are many customers. */
const livingEndpoints = 8
/** Asks of a quota subject, of ten units each: with the fourth and the fifth it reaches a threshold. */
const asksEach = 5
const askEveryMs = 800

let stack: Stack
let prometheus: Prometheus
let load: SteadyLoad
let asking: NodeJS.Timeout
let unmount: (() => void) | undefined
/** Of endpoints that live, and of the one that dies. */
let living: Server
let dying: Server
let dyingPort: number

const openEndpoint = (port: number) =>
  new Promise<Server>((done) => {
    const server = createServer((request, response) =>
      request.resume().once('end', () => response.writeHead(204).end()),
    )
    server.listen(port, '127.0.0.1', () => done(server))
  })

function closeEndpoint(endpoint: Server | undefined) {
  endpoint?.closeAllConnections()
  endpoint?.close()
}

/** The policy of the failure suite, with more endpoints: one that dies, beside several that live. */
function policyText(livingPort: number): string {
  const policy = parse(failurePolicy())
  const at = (port: number) => ({ ...policy.endpoints.demo, url: `http://127.0.0.1:${port}/` })
  for (let more = 0; more < livingEndpoints; more += 1) policy.endpoints[`living-${more}`] = at(livingPort)
  policy.endpoints.dying = at(dyingPort)
  return JSON.stringify(policy)
}

/** Two alerts every four seconds: one subject after another uses its quota up. */
function askForQuotas(): NodeJS.Timeout {
  let asked = 0
  return setInterval(() => {
    const key = keyOf(subjectId('quota', Math.floor(asked / asksEach)))
    asked += 1
    const body = JSON.stringify({ route: '/faults', method: 'GET', cost: 10 })
    const headers = { 'x-api-key': key, 'content-type': 'application/json' }
    const url = `http://127.0.0.1:${stack.ports.api}/v1/check`
    fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(5_000) })
      .then((answer) => answer.text())
      .catch(() => undefined)
  }, askEveryMs)
}

/** What an operator reads: with Redis stopped these come, and these once it is back. */
const told = readMarkdown({ path: 'docs/runbook.md', text: readFileSync(resolve('docs/runbook.md'), 'utf8') }).rows

const alertsOf = (cell = '') =>
  Array.from(cell.replaceAll(perhaps, '').matchAll(/`(\w+)`(?: \((\w+)\))?/g), ([, name, slo]) => nameOf(name, slo))
const perhapsOf = (cell = '') => Array.from(cell.matchAll(perhaps), ([, name]) => name)
const nameOf = (name = '', slo: string | undefined) => (slo === undefined ? name : `${name} ${slo}`)

interface Series {
  readonly metric: { readonly alertname: string; readonly slo?: string }
  readonly values: readonly (readonly [number, string])[]
}

/** The alerts that fired, by when they began. */
async function firedSince(startSeconds: number): Promise<ReadonlyMap<string, number>> {
  const query = encodeURIComponent(`${alerts} and ALERTS{alertstate="firing"}`)
  const range = `start=${startSeconds}&end=${Date.now() / 1_000}&step=1`
  const { result } = await prometheus.ask<{ result: Series[] }>(`query_range?query=${query}&${range}`)
  const began = new Map<string, number>()
  for (const { metric, values } of result) {
    const name = nameOf(metric.alertname, metric.slo)
    began.set(name, Math.min(began.get(name) ?? Infinity, values[0]?.[0] ?? Infinity))
  }
  return began
}

/** Waits until no alert fires or is about to. */
async function untilNone(deadlineMs: number): Promise<void> {
  let left: readonly string[] = []
  const isNone = async () => {
    const { result } = await prometheus.ask<{ result: Series[] }>(`query?query=${encodeURIComponent(alerts)}`)
    left = result.map(({ metric }) => nameOf(metric.alertname, metric.slo))
    return left.length === 0
  }
  await waitUntil(isNone, { deadlineMs, everyMs: 500 })
  expect(left).toEqual([])
}

/** Keeps the disk under the journals full, as another program that logs too much would. */
function fillDisk(): () => void {
  const file = join(stack.dir, 'journal', 'filler')
  const fill = () => {
    for (let bytes = 1024 ** 2; bytes >= 4_096; )
      try {
        writeFileSync(file, Buffer.alloc(bytes, 1), { flag: 'a' })
      } catch {
        bytes /= 16
      }
  }
  const filling = setInterval(fill, 100)
  return () => {
    clearInterval(filling)
    rmSync(file)
  }
}

beforeAll(async () => {
  const [livingPort = 0, port = 0] = await freePorts(2)
  dyingPort = port
  living = await openEndpoint(livingPort)
  dying = await openEndpoint(dyingPort)
  stack = await startStack({
    policy: policyText(livingPort),
    environment: {
      WEIR_JOURNAL_EPHEMERAL: '1',
      WEIR_JOURNAL_MAX_BYTES: String(32 * 1024 ** 2),
      // What waits for a busy machine is neither gone nor refuses: Redis decides, and ClickHouse takes inserts.
      WEIR_DECISION_DEADLINE_MS: '2000',
      WEIR_KAFKA_SESSION_MS: '30000',
    },
    onDir: (dir) => {
      unmount = mountJournalDisk(dir, diskMegabytes)
    },
    beforeRemoval: () => unmount?.(),
  })
  prometheus = await startPrometheus(stack, fastRules)
  load = startSteadyLoad({
    url: `http://127.0.0.1:${stack.ports.ingress}/hello`,
    headers: { 'x-api-key': keyOf(subjectId('wide', 0)) },
    requestsPerSecond: 150,
    connections: 20,
    onAnswer: () => undefined,
  })
  asking = askForQuotas()
  await prometheus.until('sum(weir_deliveries_total{result="delivered"}) > 4', 60_000)
  await prometheus.until(compared, 240_000)
}, 480_000)

afterAll(async () => {
  clearInterval(asking)
  await load?.stop()
  await prometheus?.close()
  await stack?.close()
  closeEndpoint(living)
  closeEndpoint(dying)
}, 180_000)

/** Holds a part of the stack down. */
const stopped = (part: string) => async () => {
  await stack.hold(part)
  return () => stack.release(part)
}

const faults: Readonly<Record<string, () => Promise<() => unknown>>> = {
  'Redis is stopped': stopped('redis'),
  'the disk under the journal is full': async () => {
    const end = fillDisk()
    await prometheus.until('sum(weir_journal_records_refused_total) > 0', 120_000).catch((error: unknown) => {
      end()
      throw error
    })
    return end
  },
  'Kafka is stopped': stopped('kafka'),
  'ClickHouse is stopped': stopped('clickhouse'),
  'an endpoint is down': async () => {
    closeEndpoint(dying)
    return async () => {
      dying = await openEndpoint(dyingPort)
    }
  },
}

test.each(Object.entries(faults))(
  '%s: exactly the alerts that the runbook names fire, and all end when it is over',
  async (fault, strike) => {
    const row = told.find(({ cells }) => cells[0] === fault)
    expect(row, 'docs/runbook.md has a row').toBeDefined()
    await untilNone(120_000)
    const startSeconds = Date.now() / 1_000
    const end = await strike()
    const isOver = `vector(time()) > ${Date.now() / 1_000 + faultSeconds}`
    await prometheus.until(isOver, 2 * faultSeconds * 1_000).finally(end)
    const overSeconds = Date.now() / 1_000
    await untilNone(300_000)
    const fired = [...(await firedSince(startSeconds))]
    const wanted = [alertsOf(row?.cells[1]), alertsOf(row?.cells[2])]
    const mayCome = perhapsOf(row?.cells[1])
    const counts = ([name]: readonly [string, number]) =>
      wanted.flat().includes(name) || !(lateness.test(name) || mayCome.includes(name))
    const during = fired.filter(counts).flatMap(([name, began]) => (began <= overSeconds ? [name] : []))
    const after = fired.filter(counts).flatMap(([name, began]) => (began > overSeconds ? [name] : []))
    expect([during.toSorted(), after.toSorted()]).toEqual(wanted.map((names) => names.toSorted()))
  },
  900_000,
)
