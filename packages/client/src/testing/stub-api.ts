import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** A call that the stub got. */
export interface Arrived {
  readonly atMs: number
  readonly path: string
  readonly body: string
  readonly request: IncomingMessage
}

type Answer = (arrived: Arrived, response: ServerResponse) => void

/** A stub of an API that is called through the limited fetch. */
export interface StubApi extends AsyncDisposable {
  readonly url: string
  readonly arrived: readonly Arrived[]
  /** Changes the answer from now on. */
  answerWith(answer: Answer): void
}

/** Starts a stub on a port of its own; it answers 200 until a test changes that. */
export async function openStubApi(): Promise<StubApi> {
  let answer: Answer = (_, response) => void response.end('done')
  const arrived: Arrived[] = []
  const server = createServer(async (request, response) => {
    const atMs = performance.now()
    let body = ''
    for await (const part of request) body += part
    const one = { atMs, path: request.url ?? '', body, request }
    arrived.push(one)
    answer(one, response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    arrived,
    answerWith(next) {
      answer = next
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
