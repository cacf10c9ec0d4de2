/** What one exchange is billed. */
export interface Bill {
  readonly input_tokens: number
  readonly output_tokens: number
}

/** The members of requests that answers depend on. */
export interface Asked {
  readonly model?: string
  /** That answers; the request's own stays as it is. */
  readonly service_tier?: string
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean } | null
  /** A stream calls the first of them. */
  readonly tools?: readonly object[]
  readonly encoding_format?: string
}

/** A whole answer, by the path that was asked. */
export function answerOf(path: string, asked: Asked, bill: Bill): object {
  if (path.startsWith('/v1/chat')) return chat(asked, bill)
  if (path === '/v1/responses') return { ...response, model: asked.model, ...responseEnd(bill) }
  if (path === '/v1/embeddings') return embeddings(asked, bill)
  if (path === '/v1/models') return { object: 'list', data: [{ id: 'm', object: 'model' }] }
  if (path.endsWith('/count_tokens')) return { input_tokens: bill.input_tokens }
  return message(asked, bill)
}

/** The events of a streamed answer, each as its bytes. */
export function eventsOf(path: string, asked: Asked, bill: Bill): string[] {
  if (path.startsWith('/v1/chat')) return chatEvents(asked, bill)
  return path === '/v1/responses' ? responseEvents(asked, bill) : messageEvents(asked, bill)
}

/** Half of what comes in was cached, and a third of what goes out is reasoning. */
export const detailsOf = ({ input_tokens: input, output_tokens: output }: Bill) => ({
  cached: Math.floor(input / 2),
  reasoning: Math.floor(output / 3),
})

/** The arguments of a call, as they come. */
const argumentPieces = ['{"ci', 'ty":"Par', 'is"}']
const named = (type: string, rest: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`

const openaiUsage = (bill: Bill) => ({
  prompt_tokens: bill.input_tokens,
  completion_tokens: bill.output_tokens,
  total_tokens: bill.input_tokens + bill.output_tokens,
  prompt_tokens_details: { cached_tokens: detailsOf(bill).cached },
  completion_tokens_details: { reasoning_tokens: detailsOf(bill).reasoning },
})

const chat = ({ model, service_tier }: Asked, bill: Bill) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model,
  service_tier,
  choices: [
    { index: 0, message: { role: 'assistant', content: 'word '.repeat(bill.output_tokens) }, finish_reason: 'stop' },
  ],
  usage: openaiUsage(bill),
})

function chatEvents(asked: Asked, bill: Bill): string[] {
  const by = { model: asked.model, service_tier: asked.service_tier }
  const chunk = (rest: object) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', ...by, ...rest })}\n\n`
  const delta = (said: object) => chunk({ choices: [{ index: 0, delta: said, finish_reason: null }] })
  const begins = { role: 'assistant' }
  const call = (of: object) => delta({ ...begins, tool_calls: [{ index: 0, ...of }] })
  const words =
    asked.tools === undefined
      ? Array.from({ length: bill.output_tokens }, () => delta({ ...begins, content: 'word ' }))
      : [
          call({ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }),
          ...argumentPieces.map((piece) => call({ function: { arguments: piece } })),
        ]
  const reason = asked.tools === undefined ? 'stop' : 'tool_calls'
  const end = chunk({ choices: [{ index: 0, delta: {}, finish_reason: reason }] })
  const usage = asked.stream_options?.include_usage === true ? [chunk({ choices: [], usage: openaiUsage(bill) })] : []
  return [...words, end, ...usage, 'data: [DONE]\n\n']
}

const response = { id: 'resp_1', object: 'response', created_at: 1, status: 'in_progress', output: [] as object[] }
const responseText = { type: 'output_text', text: 'word', annotations: [] }
const responseItem = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [responseText] }
const responseEnd = (bill: Bill, output: object = responseItem) => ({
  status: 'completed',
  output: [output],
  usage: {
    input_tokens: bill.input_tokens,
    input_tokens_details: { cached_tokens: detailsOf(bill).cached },
    output_tokens: bill.output_tokens,
    output_tokens_details: { reasoning_tokens: detailsOf(bill).reasoning },
    total_tokens: bill.input_tokens + bill.output_tokens,
  },
})

function responseEvents({ model, tools }: Asked, bill: Bill): string[] {
  const [at, part] = [{ output_index: 0, item_id: 'msg_1' }, { content_index: 0 }]
  const call = { id: 'msg_1', type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '' }
  const called = { ...call, arguments: argumentPieces.join('') }
  const middle: [string, object][] =
    tools === undefined
      ? [
          ['response.output_item.added', { ...at, item: { ...responseItem, content: [] } }],
          ['response.content_part.added', { ...at, ...part, part: { ...responseText, text: '' } }],
          ['response.output_text.delta', { ...at, ...part, delta: 'word' }],
          ['response.output_text.done', { ...at, ...part, text: 'word' }],
        ]
      : [
          ['response.output_item.added', { ...at, item: call }],
          ...argumentPieces.map((delta): [string, object] => [
            'response.function_call_arguments.delta',
            { ...at, delta },
          ]),
          ['response.function_call_arguments.done', { ...at, arguments: called.arguments }],
        ]
  const item = tools === undefined ? responseItem : called
  const events: [string, object][] = [
    ['response.created', { response: { ...response, model } }],
    ...middle,
    ['response.output_item.done', { ...at, item }],
    ['response.completed', { response: { ...response, model, ...responseEnd(bill, item) } }],
  ]
  return events.map(([type, rest], sequence_number) => named(type, { ...rest, sequence_number }))
}

function embeddings({ model, encoding_format: format }: Asked, { input_tokens: tokens }: Bill) {
  const vector = [0.5, 0.25]
  const embedding = format === 'base64' ? Buffer.from(new Float32Array(vector).buffer).toString('base64') : vector
  const usage = { prompt_tokens: tokens, total_tokens: tokens }
  return { object: 'list', model, data: [{ object: 'embedding', index: 0, embedding }], usage }
}

/** Half of the input was cached, and a tenth is written to the cache. */
export function messageUsage({ input_tokens: input }: Bill) {
  const [read, made] = [Math.floor(input / 2), Math.floor(input / 10)]
  return { input_tokens: input - read - made, cache_read_input_tokens: read, cache_creation_input_tokens: made }
}

const message = ({ model }: Asked, bill: Bill) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model,
  content: [{ type: 'text', text: 'word '.repeat(bill.output_tokens) }],
  stop_reason: 'end_turn',
  usage: { ...messageUsage(bill), output_tokens: bill.output_tokens },
})

function messageEvents({ model, tools }: Asked, bill: Bill): string[] {
  const begun = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], stop_reason: null }
  const block =
    tools === undefined ? { type: 'text', text: '' } : { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }
  const deltas =
    tools === undefined
      ? Array.from({ length: bill.output_tokens }, () => ({ type: 'text_delta', text: 'word ' }))
      : argumentPieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece }))
  const stopReason = tools === undefined ? 'end_turn' : 'tool_use'
  return [
    named('message_start', { message: { ...begun, usage: { ...messageUsage(bill), output_tokens: 1 } } }),
    named('content_block_start', { index: 0, content_block: block }),
    ...deltas.map((delta) => named('content_block_delta', { index: 0, delta })),
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: { stop_reason: stopReason }, usage: { output_tokens: bill.output_tokens } }),
    named('message_stop', {}),
  ]
}
