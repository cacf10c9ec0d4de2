import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CommandContext } from '@weir/cli/command-context.ts'
import { audit } from '@weir/cli/commands/audit.ts'
import { listDeadLetters, replayDeadLetter } from '@weir/cli/commands/dlq.ts'
import { drainJournals } from '@weir/cli/commands/journal.ts'
import { seekMetering } from '@weir/cli/commands/metering.ts'
import { createTopics } from '@weir/cli/commands/topics.ts'
import { kafkaFrom } from '@weir/cli/find-servers.ts'
import { noProgress } from '@weir/cli/terminal/progress.ts'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { encodeOutcomeOpen } from '@weir/contracts/outcome.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { decisionInput } from '../audit/decisions.ts'
import type { SecuredWeir } from './secured-weir.ts'

type Command = (context: CommandContext) => Promise<unknown>

const options = { data: '/nowhere', json: true }

const repaired: Readonly<Record<string, string>> = {
  [topics.decisions]: encodeDecisionOpen(decisionInput({ subject: 'repaired', tsMs: Date.now() })),
  [topics.outcomes]: encodeOutcomeOpen({
    id: randomUUID(),
    tsMs: Date.now(),
    subject: 'repaired',
    route: '*',
    method: 'GET',
    status: 200,
    durationMs: 1,
    bytesIn: 0,
    bytesOut: 0,
    upstream: 'here',
    error: '',
  }),
}

/**
 * The commands that ask Kafka, by the user that they run as. Letters are replayed one after the other: each is taken
 * once.
 */
export async function openCommands(weir: SecuredWeir) {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-commands-'))
  const taken = new Map<string, number>()

  const replay =
    (topic: string): Command =>
    async (context) => {
      const listed: string[] = []
      await listDeadLetters({ ...options, topic }, { ...context, print: (text) => void listed.push(text) })
      const at = taken.get(topic) ?? 0
      taken.set(topic, at + 1)
      const { partition, offset } = JSON.parse(listed[0] ?? '{}').letters[at]
      const value = join(dir, topic)
      await writeFile(value, `${repaired[topic]}}`)
      await replayDeadLetter({ ...options, topic, partition, offset, value }, context)
    }
  const seek =
    (outcomes: boolean): Command =>
    ({ environment, print }) => {
      const servers = { kafka: kafkaFrom(environment, 'weir-seek'), clickhouse: environment.WEIR_CLICKHOUSE_URL ?? '' }
      return seekMetering({ partition: 0, to: 'clickhouse', outcomes }, servers, print)
    }
  /** Each time there is a topic to be made, which nothing uses any more. */
  const makeTopics: Command = async ({ environment, report }) => {
    const known = await weir.kafka.admin.listTopics()
    if (known.includes(topics.alertsDeadLetters))
      await weir.kafka.admin.deleteTopics({ topics: [topics.alertsDeadLetters] })
    await createTopics(kafkaFrom(environment, 'weir-topics'), report)
  }
  const commands: Readonly<Record<string, readonly Command[]>> = {
    'weir-audit': [(context) => audit({ ...options, repair: false }, context)],
    'weir-dlq': [(context) => listDeadLetters(options, context), replay(topics.decisions), replay(topics.outcomes)],
    'weir-journal-drain': [(context) => drainJournals({ ...options, json: false, wait: 5 }, context)],
    'weir-metering-seek': [seek(false), seek(true)],
    'weir-topics': [makeTopics],
  }
  return {
    users: Object.keys(commands),
    /** Runs a user's commands; returns their output and whether all succeeded. */
    async run(user: string) {
      let text = ''
      let isDone = true
      const report = (line: string) => {
        text += `${line}\n`
      }
      const { signal } = new AbortController()
      const context = {
        environment: weir.environmentOf(user),
        cwd: '/',
        report,
        print: report,
        progress: noProgress,
        signal,
      }
      for (const command of commands[user] ?? []) {
        try {
          if ((await command(context)) === false) isDone = false
        } catch (error) {
          isDone = false
          report(String(error))
        }
      }
      return { isDone, text }
    },
    close: () => rm(dir, { recursive: true, force: true }),
  }
}
