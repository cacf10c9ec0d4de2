import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { listen } from './listen.ts'

/** What one exchange is billed, by the id of its decision. */
export interface Bill {
  readonly input_tokens: number
  readonly output_tokens: number
}

interface Asked {
  readonly model?: string
  readonly stream?: boolean
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
  readonly stream_options?: { readonly include_usage?: boolean } | null
  readonly messages?: readonly { readonly content: unknown }[]
}

/**
 * A server that answers as OpenAI's chat and Anthropic's messages do, and writes down what it bills. Headers of the
 * request say how it answers: `x-output` tokens, `x-fail` a status, `x-pause` after how many events it waits until the
 * test lets it go on.
 */
export async function startFakeSupplier() {
  const bills = new Map<string, Bill>()
  const paused = new Set<() => void>()
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const body = await text(request)
    const { headers, url = '' } = request
    const failed = Number(headers['x-fail'] ?? 0)
    if (failed > 0) return json(response, failed, { error: { message: 'overloaded', type: 'server_error' } })
    const seconds = headers['x-render']
    if (seconds !== undefined) return response.writeHead(200, { 'x-render-seconds': seconds }).end()
    const asked = JSON.parse(body) as Asked
    const output = Number(headers['x-output'] ?? 7)
    const bill = { input_tokens: Math.ceil(body.length / 5), output_tokens: output }
    bills.set(String(headers['weir-decision'] ?? ''), bill)
    const pauseAfter = Number(headers['x-pause'] ?? -1)
    const isChat = url.startsWith('/v1/chat')
    if (asked.stream !== true && pauseAfter === 0) await new Promise<void>((resume) => paused.add(resume))
    if (asked.stream !== true) return json(response, 200, isChat ? chat(asked, bill) : message(asked, bill))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const events = isChat ? chatEvents(asked, bill) : messageEvents(asked, bill)
    for (const [at, event] of events.entries()) {
      if (at === pauseAfter) await new Promise<void>((resume) => paused.add(resume))
      if (response.destroyed) return
      response.write(event)
    }
    response.end()
  }

  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    bills,
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

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

const openaiUsage = ({ input_tokens: input, output_tokens: output }: Bill) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: Math.floor(input / 2) },
  completion_tokens_details: { reasoning_tokens: Math.floor(output / 3) },
})

const chat = ({ model }: Asked, bill: Bill) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model,
  choices: [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(bill.output_tokens) } }],
  usage: openaiUsage(bill),
})

function chatEvents(asked: Asked, bill: Bill): string[] {
  const chunk = (rest: object) => `data: ${JSON.stringify({ id: 'chatcmpl-1', model: asked.model, ...rest })}\n\n`
  const words = Array.from({ length: bill.output_tokens }, () =>
    chunk({ choices: [{ index: 0, delta: { content: 'word ' } }] }),
  )
  const usage = asked.stream_options?.include_usage === true ? [chunk({ choices: [], usage: openaiUsage(bill) })] : []
  return [...words, chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }), ...usage, 'data: [DONE]\n\n']
}

/** Half of the input was cached, and a tenth is written to the cache. */
function messageUsage({ input_tokens: input }: Bill) {
  const [read, made] = [Math.floor(input / 2), Math.floor(input / 10)]
  return { input_tokens: input - read - made, cache_read_input_tokens: read, cache_creation_input_tokens: made }
}

const message = ({ model }: Asked, bill: Bill) => ({
  id: 'msg_1',
  type: 'message',
  model,
  content: [{ type: 'text', text: 'word '.repeat(bill.output_tokens) }],
  usage: { ...messageUsage(bill), output_tokens: bill.output_tokens },
})

function messageEvents({ model }: Asked, bill: Bill): string[] {
  const event = (type: string, rest: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
  const words = Array.from({ length: bill.output_tokens }, () =>
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'word ' } }),
  )
  return [
    event('message_start', { message: { id: 'msg_1', model, usage: { ...messageUsage(bill), output_tokens: 1 } } }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...words,
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: bill.output_tokens } }),
    event('message_stop', {}),
  ]
}
