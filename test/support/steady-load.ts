import { Agent, type IncomingHttpHeaders, request } from 'node:http'

export interface SteadyAnswer {
  /** On the clock of `performance.now()`. */
  readonly startedMs: number
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

export type SteadyLoad = ReturnType<typeof startSteadyLoad>

/** Requests begin in groups at this pace, so that the rate does not hang on the precision of timers. */
const tickMs = 10
/** Requests under way at most: a server that stands still is not buried. */
const underWayMax = 2_000

/** GETs at a steady rate, over connections that are kept. */
export function startSteadyLoad(options: {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly requestsPerSecond: number
  readonly connections: number
  readonly onAnswer: (answer: SteadyAnswer) => void
}) {
  const { url, headers, requestsPerSecond, connections, onAnswer } = options
  const agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: 'fifo' })
  const failures: string[] = []
  const beganMs = performance.now()
  let [begun, underWay] = [0, 0]
  const { promise: idle, resolve: becomeIdle } = Promise.withResolvers<void>()
  let isStopping = false
  const end = () => {
    underWay -= 1
    if (isStopping && underWay === 0) becomeIdle()
  }
  const one = () => {
    const startedMs = performance.now()
    begun += 1
    underWay += 1
    const asked = request(url, { agent, headers }, (response) => {
      response.resume()
      response.once('end', () => {
        onAnswer({ startedMs, status: response.statusCode ?? 0, headers: response.headers })
        end()
      })
    })
    asked.once('error', (error) => {
      failures.push(String(error))
      end()
    })
    asked.end()
  }
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - beganMs) / 1_000) * requestsPerSecond)
    while (begun < due && underWay < underWayMax) one()
  }, tickMs)
  return {
    /** Requests that got no answer at all. */
    failures,
    /** What was reached so far: requests begun per second. */
    perSecond: () => begun / ((performance.now() - beganMs) / 1_000),
    /** Begins no more, and waits for those under way. */
    async stop() {
      clearInterval(timer)
      isStopping = true
      if (underWay > 0) await idle
      agent.destroy()
    },
  }
}
