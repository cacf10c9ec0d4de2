import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { startGateway } from '../gateways/start-gateway.ts'
import type { Stack } from './stack.ts'

const folder = resolve('infra/prometheus')

/** A Prometheus that scrapes a stack, with the rules that Weir ships. */
export type Prometheus = Awaited<ReturnType<typeof startPrometheus>>

/** Starts it with the shipped configuration: targets and intervals are others, and rules as `change` makes them. */
export async function startPrometheus(stack: Stack, change: (rules: string) => string = (rules) => rules) {
  const read = (name: string) => readFileSync(resolve(folder, name), 'utf8')
  const rules = readdirSync(folder).filter((name) => name.endsWith('.rules.yml'))
  const server = await startGateway(async (port) => ({
    files: {
      ...Object.fromEntries(rules.map((name) => [name, change(read(name))])),
      'prometheus.yml': read('prometheus.yml').replaceAll('15s', '1s'),
      'targets.yml': JSON.stringify(
        ['ingress', 'metering', 'alerting', 'console'].map((name) => ({
          targets: [new URL(stack.opsAddress(name)).host],
          labels: { job: `weir-${name}` },
        })),
      ),
    },
    command: () => [
      'prometheus',
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      `--web.listen-address=127.0.0.1:${port}`,
    ],
  }))
  /** Asks its API: `query?query=up`. Throws what Prometheus says is wrong. */
  async function ask<Data>(path: string): Promise<Data> {
    const answer = Object(await (await fetch(`${server.url}/api/v1/${path}`)).json())
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`)
    return answer.data
  }
  /** Waits until the query has a series, and fails if it does not within the deadline. */
  const until = async (query: string, deadlineMs: number) => {
    const isSo = async () => {
      const { result } = await ask<{ result: unknown[] }>(`query?query=${encodeURIComponent(query)}`)
      return result.length > 0
    }
    const came = await waitUntil(isSo, { deadlineMs, everyMs: 500 })
    if (came !== true) throw new Error(`within ${deadlineMs / 1_000} s there was no series of ${query}`)
  }
  const isReady = async () => (await fetch(`${server.url}/-/ready`)).ok
  if ((await waitUntil(isReady, { deadlineMs: 30_000 })) !== true) throw new Error('Prometheus is not ready')
  return { ask, until, close: server.close }
}
