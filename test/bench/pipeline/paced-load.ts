import { connect, type Socket } from 'node:net'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** As many requests are under way at most: beyond them the rate is not kept, and the stack is not buried. */
const connections = 256
/** Requests do not come in step: each tick begins those that are due. */
const tickMs = 2
const answerDeadlineMs = 10_000
/** Who asks, in turn. */
export const customer = (at: number): string => `customer-${at}`

const requestOf = (token: string, subject: string): Buffer => {
  const body = JSON.stringify({ subject, route: 'GET /v1/things' })
  const headers = [`authorization: Bearer ${token}`, 'content-type: application/json', `content-length: ${body.length}`]
  return Buffer.from(['POST /v1/check HTTP/1.1', 'host: bench', ...headers, '', body].join('\r\n'))
}

/** The first answer of what a connection has received, and the rest; undefined while it is not whole. */
function takeAnswer(received: string): { readonly answer: string; readonly rest: string } | undefined {
  const head = received.indexOf('\r\n\r\n')
  const length = /content-length: (\d+)/i.exec(received)?.[1]
  if (head === -1 || length === undefined) return undefined
  const end = head + 4 + Number(length)
  return received.length < end ? undefined : { answer: received.slice(0, end), rest: received.slice(end) }
}

const isDecided = (answer: string): boolean =>
  answer.startsWith('HTTP/1.1 200') && answer.includes('"allowed":true') && answer.includes('"reason":"ok"')

/**
 * Asks the check API of `origin` for `perSecond` decisions a second over kept connections, each of the next of so many
 * subjects. A library's client would take more of the machine's CPU than what is measured.
 */
export async function startPacedLoad(origin: string, token: string, perSecond: number, subjects: number) {
  const requests = Array.from({ length: subjects }, (_, at) => requestOf(token, customer(at)))
  const idle: Socket[] = []
  let [begun, answered] = [0, 0]
  const wrong: string[] = []
  const open = async () => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1')
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    let received = ''
    socket.setNoDelay(true).on('data', (data: Buffer) => {
      received += data.toString('latin1')
      const whole = takeAnswer(received)
      if (whole === undefined) return
      received = whole.rest
      if (isDecided(whole.answer)) answered += 1
      else wrong.push(whole.answer.replace(/\r\n.*\r\n\r\n/s, ': '))
      idle.push(socket)
    })
    socket.on('error', (error) => wrong.push(String(error)))
    return socket
  }
  const sockets = await Promise.all(Array.from({ length: connections }, open))
  idle.push(...sockets)
  const startedAt = performance.now()
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * perSecond) / 1_000)
    while (begun < due) {
      const socket = idle.shift()
      if (socket === undefined) return
      socket.write(requests[begun % subjects] ?? '')
      begun += 1
    }
  }, tickMs)
  return {
    /** Answers that decided, so far. */
    answered: () => answered,
    /** Requests begun so far. */
    begun: () => begun,
    /**
     * Begins no more, and waits for the requests under way. Returns a sentence if not every request was answered by an
     * allowed decision.
     */
    async stop() {
      clearInterval(timer)
      const isDone = await waitUntil(() => answered + wrong.length >= begun, { deadlineMs: answerDeadlineMs })
      for (const socket of sockets) socket.destroy()
      if (wrong.length > 0) return `${wrong.length} of ${begun} checks were not allowed; the first: ${wrong[0]}`
      if (isDone === true) return undefined
      return `${begun - answered} checks had no answer after ${answerDeadlineMs / 1_000} s`
    },
  }
}
