/**
 * Loaded into an ingress before anything else (`--import`): each write to a segment or the gap file of its journal
 * takes WEIR_TEST_DISK_MS, and after SIGUSR2 none ends for another WEIR_TEST_STALL_MS; the log says when that began.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'

const [slowMs, stallMs] = [Number(process.env.WEIR_TEST_DISK_MS), Number(process.env.WEIR_TEST_STALL_MS)]
let stalledUntilMs = 0

const delayOf = (fd: number) => {
  if (!/\.seg$|\/gap$/.test(fs.readlinkSync(`/proc/self/fd/${fd}`))) return 0
  return Math.max(slowMs, stalledUntilMs - performance.now())
}

if (isMainThread) {
  const { write, writeSync } = fs
  const cell = new Int32Array(new SharedArrayBuffer(4))
  const writeSlowly = async (fd: number, ...rest: never[]) => {
    await Atomics.waitAsync(cell, 0, 0, delayOf(fd)).value
    Reflect.apply(write, fs, [fd, ...rest])
  }
  // With what tells `promisify` the names of its results.
  for (const symbol of Object.getOwnPropertySymbols(write)) {
    Object.defineProperty(writeSlowly, symbol, { value: Reflect.get(write, symbol) })
  }
  Object.assign(fs, {
    write: writeSlowly,
    writeSync(fd: number, ...rest: never[]): unknown {
      Atomics.wait(cell, 0, 0, delayOf(fd))
      return Reflect.apply(writeSync, fs, [fd, ...rest])
    },
  })
  syncBuiltinESMExports()
  process.on('SIGUSR2', () => {
    stalledUntilMs = performance.now() + stallMs
    process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), msg: 'the disk stalls' })}\n`)
  })
}
