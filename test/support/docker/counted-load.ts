import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect } from 'vitest'
import { startSteadyLoad } from '../steady-load.ts'
import { until } from './../until.ts'
import type { PageShell } from './page-shell.ts'

const headers = { 'x-api-key': 'load' }
const policy = `version: 1
limits: { all: { algorithm: fixed_window, size: 1000000, window: 1m } }
plans: { free: { limits: [all] } }
upstreams: { api: { url: "http://host.docker.internal:8070", hosts: ["*"] } }
subjects: { load: { plan: free, keys: [{ sha256: "$(printf %s load | sha256sum | cut -d ' ' -f 1)" }] } }`

/** Asks as the subject of the load, and resolves to the decision's id. */
export const askOnce = async (port: number): Promise<string> => {
  const answer = await fetch(`http://127.0.0.1:${port}/`, { headers })
  return answer.headers.get('weir-decision') ?? `none, but ${answer.status}`
}

/** By this console puts a policy in force that never refuses the load, and waits until these proxies have it. */
export async function allowLoad(shell: PageShell, consolePort: number, ports: readonly number[]): Promise<void> {
  const put = `curl -sf -X PUT http://127.0.0.1:${consolePort}/v1/policy -H "Authorization: Bearer $WEIR_ADMIN_TOKEN" -H 'Content-Type: application/yaml' --data-binary @-`
  await shell.run(`${put} <<END\n${policy}\nEND`, 30_000)
  for (const port of ports) {
    const isServed = async () => (await fetch(`http://127.0.0.1:${port}/`, { headers })).status === 200
    await until(isServed, 10_000)
  }
}

/** 200 requests a second in all to these proxies. */
export function startLoad(ports: readonly number[]) {
  const answered: string[] = []
  const loads = ports.map((port) =>
    startSteadyLoad({
      url: `http://127.0.0.1:${port}/`,
      headers,
      requestsPerSecond: 200 / ports.length,
      connections: 16,
      onAnswer: (answer) => answered.push(String(answer.headers['weir-decision'] ?? 'none')),
    }),
  )
  return {
    /** Waits for `count` further answers with an id. */
    async more(count: number): Promise<void> {
      const withId = () => answered.filter((id) => id !== 'none').length
      const from = withId()
      await until(() => withId() >= from + count, 90_000)
    },
    /** Ends it, and resolves to the ids that were answered, and how many answers had none or did not come. */
    async stop() {
      await Promise.all(loads.map((load) => load.stop()))
      const ids = new Set(answered.filter((id) => id !== 'none'))
      return { ids, without: answered.length - ids.size, failures: loads.flatMap((load) => load.failures).length }
    },
  }
}

/** Waits until every decision that was answered has its row; none may be there twice, and the rollup must agree. */
export async function expectCounted(
  { ids, without, failures }: Awaited<ReturnType<ReturnType<typeof startLoad>['stop']>>,
  clickhouse: (sql: string) => Promise<string>,
): Promise<void> {
  const lines = async (sql: string) => (await clickhouse(`${sql} FORMAT TSV`)).trim().split('\n')
  const isCounted = async () => {
    const found = new Set(await lines("SELECT id FROM weir.decisions WHERE subject = 'load'"))
    return [...ids].every((id) => found.has(id))
  }
  expect(await waitUntil(isCounted, { deadlineMs: 90_000, everyMs: 1_000 })).toBe(true)
  const sums = `SELECT count(), uniqExact(id), (SELECT sum(count) FROM weir.usage_15m WHERE subject = 'load')
    FROM weir.decisions WHERE subject = 'load'`
  const [all = 0, distinct, summed] = (await lines(sums)).flatMap((line) => line.split('\t').map(Number))
  process.stdout.write(
    `answered with an id ${ids.size}, without ${without}, no answer ${failures}; rows ${all}, sum of the rollup ${summed}\n`,
  )
  expect([distinct, summed]).toEqual([all, all])
}
