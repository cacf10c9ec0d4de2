import { readFile } from 'node:fs/promises'
import { topics } from '@weir/contracts/topics.ts'
import { openJournal } from '@weir/journal/open-journal.ts'
import { parseTopics, topicsFile } from '@weir/kafka/topics-file.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { makeRecords } from './make-records.ts'

/**
 * Records decisions as an ingress does, through a journal and its publisher, `perSecond` of them for `seconds`, and
 * ends when Kafka has them. What is missing to an ingress is the deciding.
 */
const [brokers = '', base = '', perSecondText = '', secondsText = ''] = process.argv.slice(2)
const perSecond = Number(perSecondText)
const events = perSecond * Number(secondsText)
/** Requests do not come in step: each tick has those that are due. */
const tickMs = 2
const drainMs = 60_000

const specs = parseTopics(await readFile(topicsFile, 'utf8'))
const journal = await openJournal({
  brokers: [brokers],
  clientId: 'bench',
  log: createLogger('bench', 'error'),
  base,
  topics: specs.filter(({ name }) => name === topics.decisions).map(({ name, partitions }) => ({ name, partitions })),
  maxBytes: 1 << 30,
  isEphemeralAllowed: true,
  onTakenAway: () => process.exit(1),
})
const log = journal.log(0)
const records = makeRecords(() => Date.now())
const startedAt = performance.now()
let made = 0
const isAllMade = await waitUntil(
  async () => {
    const due = Math.min(events, Math.floor(((performance.now() - startedAt) * perSecond) / 1_000))
    for (; made < due; made++) {
      const { subject, decision } = records.next().value
      // Its disk is behind; an ingress would refuse meanwhile.
      if (!log.append(subject, decision, true)) break
    }
    await log.writtenInTime()
    return made >= events
  },
  { deadlineMs: Number(secondsText) * 10_000, everyMs: tickMs },
)
const { left } = await journal.drain(drainMs)
process.exit(isAllMade === true && left === 0 ? 0 : 1)
