import { writeSync } from 'node:fs'
import { createClient } from '@weir/client'

/**
 * An application of a test that decides with leases: WEIR_URL, WEIR_KEY, SUBJECT or ASKED_KEY, and how many requests a
 * second, for how many seconds. Writes what it has decided as a line of JSON every 10 ms, before anything else is
 * decided: a kill loses one line at most. With PAUSE_MS it asks and pauses in turn, for that time each, to give
 * leases back. On SIGTERM, or at its end, it gives back what it holds.
 */
const { WEIR_URL: url = '', WEIR_KEY: key = '', WINDOW_MS: windowMs = '1000' } = process.env
const { SUBJECT: subject = '', ASKED_KEY: askedKey = '', PAUSE_MS: pauseMs = '0' } = process.env
const [perSecond = 0, seconds = 0] = process.argv.slice(2).map(Number)
const everyMs = 10
/** Checks on their way: more, and the server is slower than the test asks. */
const waitingMax = 200

const client = createClient({ url, key, timeoutMs: 5_000, leases: true })
const request = { ...(askedKey === '' ? { subject } : { key: askedKey }), route: 'GET /v1/things' }
const admitted: Record<string, number> = {}
const counts = { local: 0, single: 0, refused: 0, failed: 0, leasedMs: 0 }
let waiting = 0

/** By a clock that is not set with that of the process. */
const trueMs = () => performance.timeOrigin + performance.now()

/** By the end of the window that the decision was counted in. */
function note(result: Awaited<ReturnType<typeof client.check>>): void {
  if (!result.allowed) {
    counts.refused += 1
    return
  }
  const [limit] = result.limits
  const nowMs = trueMs()
  const end = String(Math.round((nowMs + (limit?.resetMs ?? 0)) / Number(windowMs)))
  admitted[end] = (admitted[end] ?? 0) + 1
}

function decide(): void {
  const local = client.tryCheck(request)
  if (local !== undefined) {
    counts.local += 1
    note(local)
    if (local.allowed) counts.leasedMs = trueMs()
    return
  }
  if (waiting >= waitingMax) return
  waiting += 1
  client
    .check(request)
    .then((result) => {
      counts.single += 1
      note(result)
    })
    .catch(() => {
      counts.failed += 1
    })
    .finally(() => {
      waiting -= 1
    })
}

const say = (isEnd: boolean) =>
  writeSync(1, `${JSON.stringify({ isEnd, admitted, ...counts, leases: client.leases })}\n`)

const endMs = performance.now() + seconds * 1_000
let owed = 0
const timer = setInterval(() => {
  const isPaused = Math.floor(performance.now() / Number(pauseMs)) % 2 === 1
  owed += isPaused ? 0 : (perSecond * everyMs) / 1_000
  for (; owed >= 1; owed -= 1) decide()
  say(false)
  if (performance.now() >= endMs) void end()
}, everyMs)

async function end(): Promise<void> {
  clearInterval(timer)
  await client.close()
  say(true)
  process.exit(0)
}
process.once('SIGTERM', () => void end())
