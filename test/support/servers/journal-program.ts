import { openJournal } from '@weir/journal/open-journal.ts'
import type { CoalescedRecord } from '@weir/journal/record-log.ts'
import { createLogger } from '@weir/runtime/logger.ts'

/** What the program below is told as its only argument. */
export interface JournalTask {
  readonly broker: string
  readonly base: string
  readonly topic: string
  /** Appends records from this number on. */
  readonly from: number
}

const task: JournalTask = JSON.parse(process.argv[2] ?? '{}')
const log = createLogger('journal', 'silent')

const journal = await openJournal({
  brokers: [task.broker],
  clientId: 'journal',
  log,
  base: task.base,
  topics: [{ name: task.topic, partitions: 6 }],
  maxBytes: 256 * 1024 * 1024,
  isEphemeralAllowed: true,
  onTakenAway: () => process.exit(1),
})
const records = journal.log(0)

let sum: CoalescedRecord | undefined
function addToSum(): void {
  if (sum?.add() === true) return
  sum = records.openCoalesced('flood', `{"n":-1,"count":`, '')
  sum?.add()
}

/** In each turn 20 records and 3 summed refusals; it says how many there are of each once they are safe. */
let n = task.from
let refusals = 0
setInterval(async () => {
  for (let count = 0; count < 20; count += 1, n += 1) records.append(`subject-${n % 50}`, `{"n":${n}`, true)
  for (let count = 0; count < 3; count += 1, refusals += 1) addToSum()
  const said = `${n} ${refusals}\n`
  if (!(await records.writtenInTime())) process.exit(2)
  process.stdout.write(said)
}, 4)
