import { connect, createServer, type Server, type Socket } from 'node:net'
import { waitUntil } from '@weir/runtime/wait-until.ts'

/** One oddity: bytes, or pieces of them that are sent with pauses between. */
export interface Odd {
  readonly name: string
  /** The RFC's section or the tracker's issue that it is from. */
  readonly source: string
  readonly bytes: string | readonly string[]
  /** How the side that sends them ends: it stays open unless this says otherwise. */
  readonly end?: 'end' | 'reset'
  /** Of an upstream: the request that it is asked by, `GET` if not given. It answers once the head has come. */
  readonly asked?: string | readonly string[]
  /** Taken from what the client got, and part of the word. */
  readonly show?: RegExp
}

/** What a client sends. */
export type SentOdd = Pick<Odd, 'bytes' | 'end' | 'show'>

/** Between two pieces, unless the other side answers before: enough for the first to be read alone. */
const pauseMs = 60
/** An answer that takes longer is none. */
const answerMsMax = 2_500

/** A message as far as it has come, in the way most clients read it. */
interface Message {
  readonly start: string
  readonly head: string
  readonly body: string
  readonly isWhole: boolean
  readonly rest: string
}

/** Reads the first message of `text`; undefined before its head is whole. */
function readMessage(text: string, isHead = false): Message | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const head = text.slice(0, end)
  const [start = ''] = head.split('\r\n', 1)
  const after = text.slice(end + 4)
  const whole = (body: string, rest: string, isWhole = true) => ({ start, head, body, isWhole, rest })
  const isAnswer = start.startsWith('HTTP/')
  const status = Number(start.split(' ')[1])
  if (isAnswer && (isHead || status < 200 || status === 204 || status === 304)) return whole('', after)
  if (/^transfer-encoding:.*chunked/im.test(head)) {
    let [body, at] = ['', 0]
    for (;;) {
      const line = /^([\da-f]+)[^\r\n]*\r\n/i.exec(after.slice(at))
      if (line === null) return whole(body, '', false)
      const size = Number.parseInt(line[1] ?? '', 16)
      at += line[0].length
      if (size === 0) {
        const last = after.slice(at).startsWith('\r\n') ? at + 2 : after.indexOf('\r\n\r\n', at) + 4
        return last === 3 || after.length < last ? whole(body, '', false) : whole(body, after.slice(last))
      }
      body += after.slice(at, at + size)
      at += size + 2
    }
  }
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  if (length === undefined) return isAnswer ? whole(after, '', false) : whole('', after)
  return whole(after.slice(0, Number(length)), after.slice(Number(length)), after.length >= Number(length))
}

async function sendOdd(socket: Socket, { bytes, end }: Pick<Odd, 'bytes' | 'end'>): Promise<void> {
  const before = socket.bytesRead
  const answered = () => waitUntil(() => socket.destroyed || socket.bytesRead > before, { deadlineMs: pauseMs })
  for (const [at, piece] of [bytes].flat().entries()) {
    if (at > 0) await answered()
    if (!socket.writable) return
    socket.write(piece, 'latin1')
  }
  if (end === 'end') socket.end()
  if (end !== 'reset') return
  // A reset overtakes what was written.
  await answered()
  socket.resetAndDestroy()
}

/** An upstream that answers `/u/N` by the bytes of row N, and anything else with the request as it came. */
export function oddUpstream(rows: readonly Odd[]): Server {
  return createServer({ allowHalfOpen: true }, (socket) => {
    let got = ''
    socket.setEncoding('latin1').on('error', () => undefined)
    socket.on('data', (chunk: string) => {
      got += chunk
      for (let asked = readMessage(got); asked !== undefined; asked = readMessage(got)) {
        const row = rows[Number(/^\S+ \/u\/(\d+) /.exec(asked.start)?.[1])]
        if (row === undefined && !asked.isWhole) return
        got = row === undefined ? asked.rest : ''
        const seen = `${asked.start.replace(/ HTTP\/1\.\d$/, '')} ${asked.body}`.trim()
        const echo = `${seen}\n${asked.head}`
        const head = `HTTP/1.1 200 OK\r\nX-Odd: 1\r\nContent-Length: ${echo.length}\r\n\r\n`
        void sendOdd(socket, row ?? { bytes: head + (asked.start.startsWith('HEAD ') ? '' : echo) })
      }
    })
    socket.on('end', () => socket.end())
  })
}

/**
 * Sends an odd request and reduces what came back to a word: of each answer its status, and what it says if it is the
 * upstream's; then how it ended, if not well.
 */
export async function wordOf(port: number, odd: SentOdd, answerMs: number = answerMsMax): Promise<string> {
  const first = [odd.bytes].flat()[0] ?? ''
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let [got, isClosed] = ['', false]
  const closed = () => {
    isClosed = true
  }
  const answers = () => readAnswers(got, first.startsWith('HEAD '))
  socket.setEncoding('latin1').on('error', closed).on('end', closed)
  socket.on('data', (chunk: string) => {
    got += chunk
  })
  await sendOdd(socket, odd)
  await waitUntil(() => isClosed || answers().isWhole, { deadlineMs: answerMs })
  // More may follow a whole answer.
  await waitUntil(() => isClosed, { deadlineMs: 4 * pauseMs })
  socket.destroy()
  const { words, isWhole, isByClose } = answers()
  const isWell = isWhole || (isByClose && isClosed)
  const shown =
    odd.show === undefined ? [] : [(odd.show.exec(got)?.[0] ?? 'not shown').toLowerCase().slice(0, 40).trim()]
  return [...words, ...shown, ...(isWell ? [] : [isClosed ? (words.length > 0 ? 'cut' : 'closed') : 'hangs'])].join(
    ', ',
  )
}

function readAnswers(text: string, isHead: boolean) {
  const words: string[] = []
  let [rest, isWhole, isByClose] = [text, false, false]
  for (let answer = readMessage(rest, isHead); answer !== undefined; answer = readMessage(rest, isHead)) {
    const status = answer.start.split(' ')[1] ?? ''
    const isOfUpstream = /^x-odd:/im.test(answer.head)
    words.push(isOfUpstream ? `${status} ${answer.body.split('\n', 1)[0] || 'empty'}`.slice(0, 60) : status)
    isWhole = answer.isWhole && !/^1(?!01)/.test(status)
    isByClose = !/^(?:content-length|transfer-encoding):/im.test(answer.head)
    rest = answer.rest
    if (!answer.isWhole) break
  }
  if (isWhole && rest !== '') words.push('and more bytes')
  return { words, isWhole, isByClose }
}
