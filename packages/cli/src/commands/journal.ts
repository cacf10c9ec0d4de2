import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { drainOrphans } from '@weir/journal/drain-orphans.ts'
import { inspectJournals, type JournalReport } from '@weir/journal/inspect.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { findKafka } from '../open-servers.ts'
import { countCell, momentCell } from '../terminal/cells.ts'
import { textTable } from '../text-table.ts'

/** The options of every command about journals. */
export interface JournalCommandOptions extends CommonOptions {
  /** The folder of journals; without it that of WEIR_JOURNAL_DIR, else of the `weir up` on the data directory. */
  readonly dir?: string
}

function findBase({ dir, data }: JournalCommandOptions, { environment }: CommandContext): string {
  const base = dir ?? (environment.WEIR_JOURNAL_DIR || join(data, 'journal'))
  if (existsSync(base)) return base
  throw new WeirError(
    'COMMAND_INVALID',
    `No journals to look at: there is no ${base}. Name their folder with --dir DIR, or set WEIR_JOURNAL_DIR.`,
  )
}

const stateOf = ({ state, by }: JournalReport) =>
  by === undefined ? state : `${state}, ${state === 'dead' ? 'in' : 'by'} ${by}`

const isSound = ({ damage, holes, problem }: JournalReport) =>
  damage.length === 0 && holes.length === 0 && problem === undefined

/** Lists the journals with their owners, and the records in them that wait for Kafka. */
export async function listJournals(options: JournalCommandOptions, context: CommandContext): Promise<void> {
  const reports = await inspectJournals(findBase(options, context))
  if (options.json) return context.print(JSON.stringify(reports))
  if (reports.length === 0) return context.report('no journals here')
  const head = ['JOURNAL', 'WAITING', 'OLDEST', 'BYTES', 'STATE']
  const rows = reports.map((report) => [
    report.journal,
    report.problem === undefined ? countCell(report.waiting) : '?',
    momentCell(report.oldestMs),
    countCell(report.bytes),
    isSound(report) ? stateOf(report) : `${stateOf(report)}; damaged: run weir journal verify`,
  ])
  context.print(textTable([head, ...rows]))
}

function troublesOf({ journal, damage, holes, problem }: JournalReport): string[] {
  return [
    ...(problem === undefined ? [] : [`${journal}: cannot be read: ${problem}`]),
    ...damage.map(
      ({ segment, offset, bytes }) => `${journal}: segment ${segment}: ${bytes} bytes from ${offset} on cannot be read`,
    ),
    ...holes.map(
      ({ topic, partition, from, to }) =>
        `${journal}: ${topic} partition ${partition}: numbers ${from} to ${to - 1} are missing`,
    ),
  ]
}

/** Reads every frame of every journal. Resolves to whether all can be read and no number is missing. */
export async function verifyJournals(options: JournalCommandOptions, context: CommandContext): Promise<boolean> {
  const reports = await inspectJournals(findBase(options, context))
  const isAllSound = reports.every(isSound)
  if (options.json) context.print(JSON.stringify({ ok: isAllSound, journals: reports }))
  else {
    for (const trouble of reports.flatMap(troublesOf)) context.print(trouble)
    const waiting = reports.reduce((sum, report) => sum + report.waiting, 0)
    context.report(
      `read ${reports.length} journals with ${waiting} waiting records: ${isAllSound ? 'all are sound' : 'not all are sound'}`,
    )
  }
  return isAllSound
}

/** Takes over the journals of dead processes and sends them to Kafka. Resolves to whether Kafka has all of them. */
export async function drainJournals(
  options: JournalCommandOptions & { readonly wait: number },
  context: CommandContext,
): Promise<boolean> {
  const base = findBase(options, context)
  const { left, sent, why } = await drainOrphans({
    ...findKafka(context, options.data),
    base,
    clientId: 'weir-journal',
    deadlineMs: options.wait * 1_000,
    signal: context.signal,
  })
  if (options.json) context.print(JSON.stringify({ sent, left }))
  else if (left === 0)
    context.report(
      sent === 0 ? 'no journal of a dead process waits' : `sent ${sent} journals of dead processes to their end`,
    )
  else
    context.report(
      `${left} journals still wait: ${why || 'is Kafka there?'} They are kept; the next ingress, or this command, goes on.`,
    )
  return left === 0
}
