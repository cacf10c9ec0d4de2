import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { listen } from './listen.ts'
import { type Asked, answerOf, type Bill, eventsOf } from './supplier-answers.ts'

const otherModel = ({ 'x-model': model, 'x-tier': tier }: IncomingMessage['headers']) => ({
  ...(model !== undefined && { model }),
  ...(tier !== undefined && { service_tier: tier }),
})

/** What came and what was sent. */
export interface Exchange {
  /** The path, and the header `x-case`. */
  readonly path: string
  readonly case: string
  readonly credentials: readonly (string | undefined)[]
  readonly bill: Bill
  /** Of the response's bytes. */
  readonly sha256: string
}

/**
 * A server that answers as the APIs of OpenAI and of Anthropic do, and writes down what it bills. Headers of the
 * request say how it answers: `x-output` tokens, `x-fail` a status, `x-pause` after how many events it waits until the
 * test lets it go on, `x-model` and `x-tier` another model and its service tier.
 */
export async function startFakeSupplier() {
  /** By the id of the decision. */
  const bills = new Map<string, Bill>()
  const exchanges: Exchange[] = []
  const paused = new Set<() => void>()
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const body = await text(request)
    const { headers, url: path = '' } = request
    const output = path === '/v1/embeddings' ? 0 : Number(headers['x-output'] ?? 7)
    const bill = { input_tokens: Math.ceil(body.length / 5), output_tokens: output }
    const sent = createHash('sha256')
    const write = (piece: string) => {
      sent.update(piece)
      return response.write(piece)
    }
    response.once('finish', () =>
      exchanges.push({
        path,
        case: String(headers['x-case'] ?? ''),
        bill,
        sha256: sent.digest('hex'),
        credentials: [headers.authorization, headers['x-api-key'] as string | undefined],
      }),
    )
    const json = (status: number, value: object) => {
      const whole = JSON.stringify(value)
      sent.update(whole)
      response.writeHead(status, { 'content-type': 'application/json' }).end(whole)
    }
    const failed = Number(headers['x-fail'] ?? 0)
    if (failed > 0) return json(failed, { type: 'error', error: { message: 'overloaded', type: 'server_error' } })
    const seconds = headers['x-render']
    if (seconds !== undefined) return response.writeHead(200, { 'x-render-seconds': seconds }).end()
    const asked = { ...JSON.parse(body || '{}'), ...otherModel(headers) } as Asked
    bills.set(String(headers['weir-decision'] ?? ''), bill)
    const pauseAfter = Number(headers['x-pause'] ?? -1)
    if (asked.stream !== true && pauseAfter === 0) await new Promise<void>((resume) => paused.add(resume))
    if (asked.stream !== true) return json(200, answerOf(path, asked, bill))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [at, event] of eventsOf(path, asked, bill).entries()) {
      if (at === pauseAfter) await new Promise<void>((resume) => paused.add(resume))
      if (response.destroyed) return
      write(event)
    }
    response.end()
  }

  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    bills,
    /** In the order in which they ended. */
    exchanges,
    /** Breaks off what is on its way. */
    cut: () => server.closeAllConnections(),
    /** Streams that wait; `resume` lets them go on. */
    paused,
    close: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
