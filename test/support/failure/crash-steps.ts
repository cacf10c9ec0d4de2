import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { encodeGapOpen } from '@weir/contracts/journal.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import type { Stack } from './stack.ts'

/** A step of an order of effects, by the name that WEIR_CRASH_AT knows it by. */
export interface CrashStep {
  /** `service.step`. */
  readonly at: string
  /** The part of the stack that passes it. */
  readonly part: string
  /** A process passes it only when it starts, or once in some ten thousand requests. */
  readonly isRare?: boolean
  /** It is passed by the process after one that died at this step. */
  readonly behind?: string
  /** What has to happen for it to be passed, where requests alone do not do. Called again and again. */
  readonly occasion?: (stack: Stack) => Promise<void>
}

const of = (part: string, service: string, steps: readonly string[]): CrashStep[] =>
  steps.map((step) => ({ at: `${service}.${step}`, part }))

/** A record that no row can be made of. */
async function sendPoison({ kafka }: Stack): Promise<void> {
  const sender = createRecordSender(kafka)
  await sender.send(topics.decisions, [{ key: 'poison', value: '{"v":1,"id":"poison","count":-1}' }])
  await sender.close()
}

/** A record that looks like all others, and that ClickHouse refuses: then each of its block is read. */
async function sendRefused({ kafka }: Stack): Promise<void> {
  const sender = createRecordSender(kafka)
  const tsMs = Date.now()
  const open = encodeDecisionOpen(decisionInput({ id: uuidv7(tsMs), tsMs, subject: 'poison' }))
  const value = `${open.replace('"cost":1', '"cost":"much"')},"journal":"${uuidv7(tsMs)}","seq":0}`
  await sender.send(topics.decisions, [{ key: 'poison', value }])
  await sender.close()
}

/** What a journal says of records that Kafka refused; its metering is a block's last but one effect. */
async function sendGap({ kafka }: Stack): Promise<void> {
  const sender = createRecordSender(kafka)
  const nowMs = Date.now()
  const open = encodeGapOpen({ cause: 'refused', count: 1, fromMs: nowMs, toMs: nowMs, detail: 'failure suite' })
  await sender.send(topics.decisions, [{ key: 'gap', value: `${open},"journal":"${uuidv7(nowMs)}","seq":0}` }])
  await sender.close()
}

/** Those under which nothing is lost on the way; `elsewhere` are the others. */
export const crashSteps: readonly CrashStep[] = [
  ...of('alerting', 'alerting', ['claim', 'supersede', 'publish', 'done', 'commit', 'enqueue', 'enqueue_commit']),
  ...of('alerting', 'alerting', ['attempt', 'attempt_recorded']),
  ...of('metering', 'metering', ['declare', 'insert', 'marks', 'members', 'commit']),
  ...of('metering', 'metering', ['dead_letters']).map((step) => ({ ...step, occasion: sendPoison })),
  ...of('metering', 'metering', ['redeclare']).map((step) => ({ ...step, occasion: sendRefused })),
  ...of('metering', 'metering', ['gaps']).map((step) => ({ ...step, occasion: sendGap })),
  ...of('ingress', 'ingress', ['journal_due', 'journal_written', 'send', 'answer', 'save', 'journal_acked']),
  ...of('ingress', 'ingress', [
    'journal_made',
    'journal_listening',
    'journal_shown',
    'journal_segment',
    'journal_segment_deleted',
    // What the process before has left is taken over once.
    'journal_adopted',
    'adopted_sent',
    'journal_segment_removed',
  ]).map((step) => ({ ...step, isRare: true })),
  ...of('ingress', 'ingress', ['journal_unnested']).map((step) => ({
    ...step,
    isRare: true,
    behind: 'ingress.journal_adopted',
  })),
]

/**
 * What is played at once, so that the suite ends before its reader has gone: of each part a step or more, one after the
 * other, while those of the other parts are killed too.
 */
export function crashScenarios(): readonly (readonly (readonly CrashStep[])[])[] {
  const byPart = [...Map.groupBy(crashSteps, ({ part }) => part).values()]
  const scenarios = Math.min(...byPart.map(({ length }) => length))
  return Array.from({ length: scenarios }, (_, index) =>
    byPart.map((steps) => steps.filter((_, at) => at % scenarios === index)),
  )
}

/** Steps that have a test of their own, and where. */
export const elsewhere: readonly string[] = [
  'journal_gap_recorded', // disk.test.ts: a journal that admits when it is full
  'quarantine', // test/servers/kafka: a record that Kafka refuses for good
  'dissolve', // test/servers/metering/joint-blocks.test.ts: a block that ClickHouse refuses twice
  'settle.corrected', // settle.test.ts
  'settle.written',
  'settle.recorded',
  'lease.peeked', // leases.test.ts
  'lease.charged',
  'lease.written',
]
