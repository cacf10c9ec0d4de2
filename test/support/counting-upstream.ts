import { createServer, type ServerResponse } from 'node:http'
import { listen } from './listen.ts'

/**
 * An upstream that counts its requests in flight by `X-Weir-Subject`. It answers after `x-ms` milliseconds, or with
 * `hold` once the test ends what is in `held`; with `x-end` it answers 500, or closes the connection in the middle.
 */
export async function startCountingUpstream() {
  const inFlight = new Map<string, number>()
  /** The most that there were. */
  const most = new Map<string, number>()
  const held = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    const subject = String(request.headers['x-weir-subject'])
    const now = (inFlight.get(subject) ?? 0) + 1
    inFlight.set(subject, now)
    most.set(subject, Math.max(most.get(subject) ?? 0, now))
    let isIn = true
    const end = () => {
      if (isIn) inFlight.set(subject, (inFlight.get(subject) ?? 0) - 1)
      isIn = false
    }
    response.on('close', end)
    // A peer may notice this before our own event says so.
    const breakOff = () => {
      end()
      request.socket.destroy()
    }
    const { 'x-ms': ms = '0', 'x-end': how } = request.headers
    response.writeHead(how === '500' ? 500 : 200).write('.')
    if (ms === 'hold') held.add(response)
    else AbortSignal.timeout(Number(ms)).onabort = () => (how === 'close' ? breakOff() : response.end())
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    most,
    inFlight: (subject: string) => inFlight.get(subject) ?? 0,
    endHeld() {
      for (const response of held) response.end()
      held.clear()
    },
    /** Breaks off whatever it is answering. */
    cut: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
