import { setTimeout as delay } from 'node:timers/promises'
import { type AuditPorts, type AuditResult, auditAll } from '@weir/audit/audit-all.ts'
import { repair } from '@weir/audit/repair.ts'
import type { Span } from '@weir/clickhouse/audit/rollups.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { CommandContext } from '../command-context.ts'
import { findDefinitions, type PolicyOptions } from '../limits/find-policy.ts'
import { findKafka, withClickhouse, withQuotaServers, withReplicas } from '../open-servers.ts'
import { textTable } from '../text-table.ts'

interface AuditOptions extends PolicyOptions {
  readonly from?: string
  readonly to?: string
  readonly repair: boolean
}

const hourMs = 3_600_000
/** Without `--from`: what happened since yesterday at this time. */
const spanMsDefault = 24 * hourMs
/** An insert block is written within a second or two. */
const pauseMs = 1_500

function timeOf(name: string, text: string | undefined, fallbackMs: number): number {
  const ms = text === undefined ? fallbackMs : Date.parse(text)
  if (!Number.isNaN(ms)) return ms
  throw new WeirError(
    'COMMAND_INVALID',
    `--${name} takes a time, such as 2026-11-20T10:00:00Z, not ${JSON.stringify(text)}`,
  )
}

/** Whole hours. Behind the end a row may still have a clock that is ahead. */
function spanOf({ from, to }: AuditOptions, nowMs: number): Span {
  const fromMs = Math.floor(timeOf('from', from, nowMs - spanMsDefault) / hourMs) * hourMs
  const toMs = Math.ceil(timeOf('to', to, nowMs + hourMs) / hourMs) * hourMs
  if (fromMs < toMs) return { fromMs, toMs }
  throw new WeirError('COMMAND_INVALID', '--from must be before --to')
}

function print({ findings, above, compared }: AuditResult, context: CommandContext): void {
  context.report(`compared ${compared.offsets} Kafka offsets and ${compared.counts} quota counts`)
  if (above.counts > 0) {
    const what = `${above.counts} counts in Redis exceed the records, by ${above.units} units in total`
    context.report(
      `${what}, as happens if a process is killed between charge and record (weir limits reset resets one)`,
    )
  }
  if (findings.length === 0) context.report('nothing differs')
  const columns = ['check', 'what', 'where', 'expected', 'found', 'note'] as const
  const rows = findings.map((one) => columns.map((column) => one[column]))
  if (rows.length > 0) context.print(textTable([columns.map((column) => column.toUpperCase()), ...rows]))
}

/** Compares, repairs if asked to, and compares again. Resolves to whether no discrepancy is left. */
async function run(options: AuditOptions, context: CommandContext, ports: AuditPorts, span: Span): Promise<boolean> {
  const first = await auditAll(ports, span)
  const { findings, above, compared } = first
  if (!options.json) print(first, context)
  if (!options.repair || findings.length === 0) {
    if (options.json) context.print(JSON.stringify({ findings, above, compared }))
    return findings.length === 0
  }
  const repaired: string[] = []
  await repair(ports, first, span, (line, isRepaired) => {
    if (isRepaired) repaired.push(line)
    context.report(line)
  })
  const left = await auditAll(ports, span)
  if (options.json) {
    const now = { left: left.findings, above: left.above, compared: left.compared }
    context.print(JSON.stringify({ findings, repaired, ...now }))
  } else {
    context.report(left.findings.length === 0 ? 'all discrepancies are repaired' : 'what is left:')
    if (left.findings.length > 0) print(left, context)
  }
  return left.findings.length === 0
}

/** Compares raw rows, rollups, Kafka and Redis. Resolves to whether nothing differs. */
export async function audit(options: AuditOptions, context: CommandContext): Promise<{ readonly isClean: boolean }> {
  const span = spanOf(options, Date.now())
  const { policy } = await findDefinitions(options, context)
  const kafka = findKafka(context, options.data)
  const pause = () => delay(pauseMs)
  const isClean = await withClickhouse(context, options.data, (clickhouse) =>
    withReplicas(context, clickhouse, (cluster) =>
      withQuotaServers(context, options.data, (servers) => {
        const more = { policy, nowMs: Date.now, pause, tell: context.progress.tell }
        return run(options, context, { clickhouse, kafka, servers, ...more, ...cluster }, span)
      }),
    ),
  )
  return { isClean }
}
