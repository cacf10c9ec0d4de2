import { getStatus } from '@weir/api/status.ts'
import type { FastifyInstance } from 'fastify'
import type { FailedDelivery } from '../alerts/delivery-queries.ts'
import { serve } from '../http/serve.ts'
import type { Sources } from '../sources.ts'
import { iso } from '../usage/completeness.ts'
import { lateWords } from './ask-processes.ts'
import { judgeStatus, type StatusParts } from './judge-status.ts'
import { StatusBridge } from './status-bridge.ts'

/** How far back gaps and failed deliveries are shown: what happened last night is seen in the morning. */
const backMs = 24 * 3_600_000
/** More is as bad; the newest are left out. */
const failedMax = 10_000

const unread = 'ClickHouse did not answer'

const partOf = <T>(part: T | string): T | null => (typeof part === 'string' ? null : part)

/** How many deliveries failed at each endpoint. */
const byEndpoint = (failed: readonly FailedDelivery[]) =>
  [...Map.groupBy(failed, ({ endpoint }) => endpoint)].map(([endpoint, of]) => ({ endpoint, count: of.length }))

async function readParts(sources: Sources, bridge: StatusBridge, nowMs: number): Promise<StatusParts> {
  const { status, usage, alerts, policy } = sources
  const within = { fromMs: nowMs - backMs, toMs: nowMs }
  const readFailed = () => alerts.listFailed(within, failedMax).then(byEndpoint)
  const orElse = (what: string) => () => `${what} not known: ${unread}`
  const [completeness, gaps, failed, redis, asked] = await Promise.all([
    bridge.inTime('usage', () => usage.askCompleteness('decisions')).catch(orElse('usage is')),
    bridge.inTime('gaps', () => status.recentGaps(within.fromMs)).catch(orElse('gaps are')),
    bridge.inTime('deliveries', readFailed).catch(orElse('failed deliveries are')),
    status.redisProblem(),
    status.processes(),
  ])
  const processes = asked.map((one) => bridge.keep(one.url, one, one.said.includes(lateWords)))
  const unreadPolicy = 'the policy has not been read yet: Kafka does not respond'
  return { completeness, gaps, failed, redis, processes, policy: policy.state ? undefined : unreadPolicy }
}

/** `GET /v1/status`: whether anything is wrong now, of everything that the console can ask. */
export function registerStatus(app: FastifyInstance, sources: Sources): void {
  const {
    clock,
    changes: { audit },
  } = sources
  // Callers that ask while one is under way get its answer: a hundred of them are one question to each process.
  const bridge = new StatusBridge(clock)
  let underWay: Promise<StatusParts> | undefined
  const readOnce = (nowMs: number) => {
    underWay ??= readParts(sources, bridge, nowMs).finally(() => {
      underWay = undefined
    })
    return underWay
  }
  serve(app, getStatus, async () => {
    const nowMs = clock.nowMs()
    const parts = await readOnce(nowMs)
    const { look, warnings } = judgeStatus(parts, nowMs)
    const { completeThroughMs, silent } = partOf(parts.completeness) ?? { completeThroughMs: undefined, silent: [] }
    const [last] = audit.page(undefined, 1)
    return {
      at: iso(nowMs),
      ok: look.length === 0,
      look,
      warnings,
      complete_through: completeThroughMs === undefined ? null : iso(completeThroughMs),
      silent: silent.map(({ journal, sinceMs }) => ({ journal, since: iso(sinceMs) })),
      gaps: partOf(parts.gaps),
      failed_deliveries: partOf(parts.failed),
      ingress: sources.access.ingressUrl || null,
      redis: parts.redis ?? null,
      policy: last === undefined ? null : { change: last.id, at: last.at, by: last.by },
      held_back: parts.processes.flatMap(({ name, heldBack }) =>
        Object.entries(heldBack).map(([endpoint, addresses]) => ({ endpoint, by: name, addresses })),
      ),
      processes: parts.processes,
    }
  })
}
