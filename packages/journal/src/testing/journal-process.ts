import { createCrashPoint } from '@weir/runtime/crash-point.ts'
import { adoptOrphans, createDirectory } from '../directory/directory.ts'
import { openWriter } from '../write/open-writer.ts'
import { testOptions, testTopics } from './temporary-journal.ts'

/**
 * For tests: a process of its own that writes records and sums to a journal without end, and says on stdout what has
 * been written, so that a test can kill it at any moment and count. Arguments: the base directory, how many records to
 * write (0 for no end), WEIR_CRASH_AT.
 */
const [base = '', count = '0', crashAt] = process.argv.slice(2)
const crash = createCrashPoint('ingress', crashAt)
const directory = await createDirectory(base, testTopics, crash)
await adoptOrphans(base, directory, crash)
const writer = await openWriter(directory, { ...testOptions, crash })
const log = writer.log(0)
process.stdout.write(`journal ${directory.journal}\n`)

let added = 0
/** A sum says how much it counts by now. */
function openSum() {
  added = 0
  return log.openCoalesced('flood', '{"n":-1,"count":', ',"last":0', () => `,"last":${added}`)
}
function add(): boolean {
  if (sum?.add() !== true) return false
  added += 1
  return true
}

let sum = openSum()
for (let n = 0; count === '0' || n < Number(count); ) {
  const first = n
  for (; n < first + 5; n += 1) log.append(`k${n % 7}`, `{"n":${n},"x":"${'x'.repeat((n * 7919) % 20_000)}"`, true)
  if (!add()) {
    sum = openSum()
    add()
  }
  if (!(await log.writtenInTime())) throw new Error('not written')
  // Only what the pipe has taken is read after a kill: a line that a slow reader leaves in this process would be lost.
  await new Promise((taken) => process.stdout.write(`written ${n} 1\n`, taken))
  if (n % 500 === 0) await new Promise((next) => setImmediate(next))
}
process.stdout.write('done\n')
setInterval(() => undefined, 1_000)
