/**
 * Loaded into a service before anything else (`--import`): its wall clock is off by as many milliseconds as
 * WEIR_TEST_CLOCK_FILE says, from the moment at which the file says so. Timers and the monotonic clock stay as they
 * are, as when a clock is set.
 */
import { readFileSync } from 'node:fs'

const file = process.env.WEIR_TEST_CLOCK_FILE ?? ''
const readEveryMs = 100

let offsetMs = 0
const read = () => {
  try {
    offsetMs = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    // Nobody has set the clock yet.
  }
}
read()
setInterval(read, readEveryMs).unref()

const trueNow = Date.now.bind(Date)
const shiftedNow = () => trueNow() + offsetMs
globalThis.Date = new Proxy(Date, {
  get: (target, name, receiver) => (name === 'now' ? shiftedNow : Reflect.get(target, name, receiver)),
  construct: (target, given) => (given.length === 0 ? new target(shiftedNow()) : Reflect.construct(target, given)),
})
