import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** One question that the stub was asked. */
export interface StubRequest {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly headers: IncomingMessage['headers']
  readonly socket: Socket
}

type Answer = (asked: StubRequest, response: ServerResponse) => void | Promise<void>

/** A server that answers as a test says, in the form of Weir's api listener. */
export interface StubWeir extends AsyncDisposable {
  readonly url: string
  readonly asked: readonly StubRequest[]
  /** Changes the answer from now on. */
  answerWith(answer: Answer): void
  /** Answers batches from now on. Until then there are none, as with a gateway that passes on checks alone. */
  answerBatchesWith(answer: Answer): void
}

/** Builds a decision in the form of the check API. */
export const decision = (fields: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> => ({
  id: '0199',
  allowed: true,
  reason: 'ok',
  denied_by: '',
  retry_after_ms: 0,
  limits: [{ name: 'minute', size: 10, used: 1, remaining: 9, reset_ms: 60_000 }],
  ...fields,
})

/** Builds a denial by the limit `minute`. */
export const refusal = (retryAfterMs: number, fields: Readonly<Record<string, unknown>> = {}) =>
  decision({ allowed: false, reason: 'limit', denied_by: 'minute', retry_after_ms: retryAfterMs, ...fields })

/** Answers with JSON, with status 200 unless given. */
export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    ratelimit: '"minute";r=9;t=60',
    'weir-decision': '0199',
  })
  response.end(JSON.stringify(value))
}

/** The checks of a batch. */
export const checksOf = ({ body: { checks } }: StubRequest): readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(checks) ? checks : []

/** A result of a batch, with the headers that `sendJson` gives a check of its own. */
export const inBatch = (result: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  ...result,
  headers: { ratelimit: '"minute";r=9;t=60', 'weir-decision': '0199' },
})

/** Starts a stub on a port of its own; it allows everything until a test changes that. */
export async function openStubWeir(): Promise<StubWeir> {
  let answer: Answer = (_, response) => sendJson(response, decision())
  let answerBatch: Answer = (_, response) => void response.writeHead(404).end()
  const asked: StubRequest[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    const one = { path: request.url ?? '', body: JSON.parse(text), headers: request.headers, socket: request.socket }
    asked.push(one)
    await (one.path.endsWith('/batch') ? answerBatch : answer)(one, response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    answerWith(next) {
      answer = next
    },
    answerBatchesWith(next) {
      answerBatch = next
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
