import { expect, test } from 'vitest'
import { AnswerMeter } from './measure-answer.ts'
import { DimensionValues, RequestMeter } from './measure-request.ts'
import { type Meter, meterDefaults, type PresetName } from './meter.ts'
import { meterReaderOf } from './meter-reader.ts'

const preset = (name: PresetName, more: Partial<Meter> = {}): Meter => ({
  ...meterDefaults,
  name,
  preset: name,
  ...more,
})

function measure(meter: Meter, body: object | string, head: Record<string, readonly string[]> = {}) {
  const measuring = new RequestMeter(meterReaderOf(meter), {
    values: ({ kind, name }) => head[`${kind}:${name}`] ?? [],
  })
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  if (text !== '') measuring.write(Buffer.from(text))
  const found = measuring.end()
  if ('wrong' in found) return found.wrong
  // Beyond what the bytes of the body are held for.
  const { input_tokens: input = 0, ...most } = Object.fromEntries(found.most)
  const units: Record<string, number> = { ...most, input: input - Buffer.byteLength(text) - 2_048 }
  delete units.tokens
  return found.isUnbounded ? 'unbounded' : found.isDeferred ? 'deferred' : units
}

const text = (content: unknown) => ({ messages: [{ role: 'user', content }], max_tokens: 10 })
const image = (url: string) => ({ type: 'image_url', image_url: { url } })

test.each<[string, object, object | string]>([
  ['text', text('😀 ꙮ'), { input: 0, output_tokens: 10 }],
  ['parts of text', text([{ type: 'text', text: 'x' }]), { input: 0, output_tokens: 10 }],
  ['choices', { ...text('x'), n: 3 }, { input: 0, output_tokens: 30 }],
  ['the larger of two bounds', { ...text('x'), max_completion_tokens: 70 }, { input: 0, output_tokens: 70 }],
  [
    'images in the body',
    text([image('data:image/png;base64,AA'), image('data:,')]),
    { input: 10_000, output_tokens: 10 },
  ],
  ['an image by its address', text([image('https://example.com/a.png')]), 'unbounded'],
  ['an image by an address that is written otherwise', text([image('\u0048ttp://a')]), 'unbounded'],
  ['a file', text([{ type: 'file', file: { file_id: 'f' } }]), 'unbounded'],
  ['audio', text([{ type: 'input_audio', input_audio: { data: '' } }]), 'unbounded'],
  ['an earlier response', { input: 'x', max_output_tokens: 9, previous_response_id: 'r' }, 'unbounded'],
  [
    'no earlier response',
    { input: 'x', max_output_tokens: 9, previous_response_id: null },
    { input: 0, output_tokens: 9 },
  ],
  ['a conversation', { input: 'x', max_output_tokens: 9, conversation: { id: 'c' } }, 'unbounded'],
  ['a stored prompt', { input: 'x', max_output_tokens: 9, prompt: { id: 'p' } }, 'unbounded'],
  ['no bound of the output', { input: 'x' }, 'unbounded'],
  ['an answer that comes later', { input: 'x', max_output_tokens: 9, background: true }, 'deferred'],
  ['tools of its own', { ...text('x'), tools: [{ type: 'function' }] }, { input: 0, output_tokens: 10 }],
])('What a request to OpenAI may use: %s', (_, body, most) => {
  expect(measure(preset('openai'), body)).toEqual(most)
})

test('Tools that the supplier runs read what they find and what the model wrote: four runs over its context are held', () => {
  const body = { ...text('x'), tools: [{ type: 'web_search' }] }
  const beyond = 4 * 10_000 - JSON.stringify(body).length - 2_048
  expect(measure(preset('openai', { context: 10_000 }), body)).toEqual({ input: beyond, output_tokens: 40 })
  expect(measure(preset('openai'), body)).toBe('unbounded')
  expect(measure(preset('openai', { maxOutput: 5 }), { input: 'x' })).toEqual({ input: 0, output_tokens: 5 })
})

test.each([
  ['a bound that is a text', { ...text('x'), max_tokens: '100000' }],
  ['a bound above any', { ...text('x'), max_tokens: 2_000_000_000 }],
  ['choices that are a text', { ...text('x'), n: '128' }],
  ['more than anybody may use', { ...text('x'), max_tokens: 1e9, n: 1e9 }],
  ['another spelling of a bound', { ...text('x'), Max_Completion_Tokens: 100_000 }],
  ['another spelling of the choices', { ...text('x'), N: 128 }],
])('A request to OpenAI with %s is refused, and not held for less', (_, body) => {
  expect(measure(preset('openai', { maxOutput: 1_000 }), body)).toEqual(expect.any(String))
})

test('A bound of the other API bounds nothing, and a prediction is output too', () => {
  expect(
    measure(preset('openai', { maxOutput: 900 }), { ...text('x'), max_tokens: undefined, max_output_tokens: 1 }),
  ).toEqual({ input: 0, output_tokens: 900 })
  const predicted = { ...text('x'), prediction: { type: 'content', content: 'y'.repeat(400) } }
  expect(measure(preset('openai'), predicted)).toEqual({
    input: 0,
    output_tokens: 10 + JSON.stringify(predicted).length,
  })
})

test.each([
  ['an earlier item', { input: [{ id: 'msg_abc' }], max_output_tokens: 9 }],
  ['a file of an image', { input: [{ content: [{ type: 'input_image', file_id: 'f' }] }], max_output_tokens: 9 }],
  ['an earlier sound', { messages: [{ role: 'assistant', audio: { id: 'a' } }], max_tokens: 9 }],
])('A request to OpenAI that names %s is bound by the context alone', (_, body) => {
  expect(measure(preset('openai'), body)).toBe('unbounded')
})

const source = (type: string) => ({ type: 'image', source: { type, data: '' } })

test.each<[string, object, object | string]>([
  ['text', text('x'), { input: 0, output_tokens: 10 }],
  ['an image in the body', text([source('base64')]), { input: 5_000, output_tokens: 10 }],
  ['an image by its address', text([source('url')]), 'unbounded'],
  ['a document', text([{ type: 'document', source: { type: 'base64', data: '' } }]), 'unbounded'],
  [
    'an image that a tool returned',
    text([{ type: 'tool_result', content: [source('base64')] }]),
    { input: 5_000, output_tokens: 10 },
  ],
  ['a document that a tool returned', text([{ type: 'tool_result', content: [{ type: 'document' }] }]), 'unbounded'],
  ['a container', { ...text('x'), container: 'c' }, 'unbounded'],
  ['servers of others', { ...text('x'), mcp_servers: [] }, 'unbounded'],
  ['compaction', { ...text('x'), context_management: { edits: [] } }, 'unbounded'],
  ['no bound of the output', { messages: [] }, 'unbounded'],
  [
    'tools of its own',
    { ...text('x'), tools: [{ name: 'a' }, { type: 'bash_20250124' }] },
    { input: 0, output_tokens: 10 },
  ],
])('What a request to Anthropic may use: %s', (_, body, most) => {
  expect(measure(preset('anthropic'), body)).toEqual(most)
})

test('Searches are held by what their tool allows', () => {
  const search = (more: object) => ({ ...text('x'), tools: [{ type: 'web_search_20250305', ...more }] })
  const meter = preset('anthropic', { context: 10_000 })
  expect(measure(meter, search({}))).toMatchObject({ web_search_requests: 10, output_tokens: 40 })
  expect(measure(meter, search({ max_uses: 3 }))).toMatchObject({ web_search_requests: 3 })
  expect(measure(preset('anthropic'), search({}))).toBe('unbounded')
})

test('A request that readers could read in two ways is not measured', () => {
  expect(measure(preset('openai'), '{"max_tokens":1,"MAX_TOKENS":100}')).toContain('more than once')
  expect(measure(preset('openai'), '{"max_tokens":1')).toContain('not JSON')
})

const rows: Meter = {
  ...meterDefaults,
  name: 'rows',
  units: new Map([
    ['rows', { before: { kind: 'query', name: 'limit' }, otherwise: 50, after: { kind: 'json', pointer: '/items' } }],
    ['pages', { before: undefined, otherwise: 1, after: undefined }],
    ['last', { before: undefined, otherwise: 9, after: { kind: 'sse', event: 'done', pointer: '/n' } }],
  ]),
}

test('Units of your own come from the request, and a wrong quantity is refused', () => {
  expect(measure(rows, '', { 'query:limit': ['7'] })).toMatchObject({ rows: 7, pages: 1 })
  expect(measure(rows, '')).toMatchObject({ rows: 50, pages: 1 })
  expect(measure(rows, '', { 'query:limit': ['7', '8'] })).toContain('must be a whole number')
  expect(measure(rows, '', { 'query:limit': ['-1'] })).toContain('must be a whole number')
})

const end = { isFailed: false, bytesIn: 0, bytesOut: 0, durationMs: 0, trailers: {} }

/** What an answer of these pieces used, of at most 1,000 of each unit. */
function used(meter: Meter, type: string, pieces: readonly string[], more: Partial<typeof end> = {}) {
  const reader = meterReaderOf(meter)
  const answer = new AnswerMeter(reader, { 'content-type': type })
  for (const piece of pieces) answer.write(Buffer.from(piece))
  const units = [...(reader.preset?.units ?? []), ...meter.units.keys()]
  const most = new Map(units.map((unit) => [unit, 1_000]))
  const request = { most, isUnbounded: false, isDeferred: false, dimensions: new Map(), bytes: 400 }
  const { units: found, basis } = answer.end(request, { ...end, ...more })
  return { ...Object.fromEntries(found), basis }
}
const event = (data: object, name = '') => `${name === '' ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`

test('A response of OpenAI says its usage at its end', () => {
  const usage = {
    input_tokens: 75,
    input_tokens_details: { cached_tokens: 32 },
    output_tokens: 1_186,
    output_tokens_details: { reasoning_tokens: 1_024 },
    total_tokens: 1_261,
  }
  const stream = [
    event({ type: 'response.created', response: { usage: null } }, 'response.created'),
    event({ type: 'response.output_text.delta', delta: 'Hi' }, 'response.output_text.delta'),
    event({ type: 'response.completed', response: { usage } }, 'response.completed'),
  ].join('')
  const units = { input_tokens: 75, cache_read_input_tokens: 32, output_tokens: 1_186, reasoning_output_tokens: 1_024 }
  const expected = { ...units, tokens: 1_261, basis: 'reported' }
  expect(used(preset('openai'), 'text/event-stream; charset=utf-8', [stream])).toEqual(expected)
  expect(used(preset('openai'), 'text/event-stream', [...stream])).toEqual(expected)
  expect(used(preset('openai'), 'application/json', [JSON.stringify({ usage })])).toEqual(expected)
})

test('An embedding has an input alone', () => {
  const answer = JSON.stringify({ object: 'list', usage: { prompt_tokens: 8, total_tokens: 8 } })
  expect(used(preset('openai'), 'application/json', [answer])).toMatchObject({
    input_tokens: 8,
    output_tokens: 0,
    tokens: 8,
  })
})

test('Usage of Anthropic is cumulative: the last event that has a member says it', () => {
  const stream = [
    event({
      type: 'message_start',
      message: { usage: { input_tokens: 25, cache_read_input_tokens: 100, output_tokens: 1 } },
    }),
    event({ type: 'content_block_delta', delta: { type: 'text_delta', text: 'Hello' } }),
    event({
      type: 'message_delta',
      usage: { input_tokens: 60, output_tokens: 15, server_tool_use: { web_search_requests: 2 } },
    }),
    event({ type: 'message_stop' }),
  ]
  expect(used(preset('anthropic'), 'text/event-stream', stream)).toMatchObject({
    input_tokens: 160,
    cache_read_input_tokens: 100,
    output_tokens: 15,
    tokens: 175,
    web_search_requests: 2,
    basis: 'reported',
  })
  // The client has gone before its end: what it begins with is no usage of the output.
  expect(used(preset('anthropic'), 'text/event-stream', stream.slice(0, 2))).toMatchObject({
    input_tokens: 125,
    output_tokens: 2,
    tokens: 127,
    basis: 'counted',
  })
})

test('Runs that compaction adds are summed instead of the usage above them', () => {
  const iterations = [
    { type: 'compaction', input_tokens: 500, output_tokens: 40 },
    { type: 'message', input_tokens: 30, output_tokens: 7 },
  ]
  const usage = { input_tokens: 30, output_tokens: 7, iterations }
  const expected = { input_tokens: 530, output_tokens: 47, basis: 'reported' }
  expect(used(preset('anthropic'), 'application/json', [JSON.stringify({ usage })])).toMatchObject(expected)
  const stream = [event({ type: 'message_delta', usage }), event({ type: 'message_stop' })]
  expect(used(preset('anthropic'), 'text/event-stream', [...stream, ...stream])).toMatchObject(expected)
})

test('What an answer does not say is counted by what was seen of it, up to what was held, or stays held', () => {
  const words = Array.from({ length: 30 }, () => event({ choices: [{ delta: { content: 'word ' } }] }))
  const counted = { input_tokens: 100, output_tokens: 50, tokens: 150, basis: 'counted' }
  expect(used(preset('openai'), 'text/event-stream', words)).toMatchObject(counted)
  const long = [event({ choices: [{ delta: { content: 'x'.repeat(9_000) } }] })]
  expect(used(preset('openai'), 'text/event-stream', long)).toMatchObject({ output_tokens: 1_000, basis: 'counted' })
  expect(used(preset('openai', { unsaid: 'hold' }), 'text/event-stream', words)).toMatchObject({
    tokens: 1_000,
    basis: 'bound',
  })
  expect(used(preset('openai'), 'text/plain', ['Bad Gateway'], { isFailed: true })).toMatchObject({
    tokens: 0,
    basis: 'reported',
  })
})

test('Events that come one by one are only looked through once a few are read, and say the same as all in one piece', () => {
  const texts = Array.from({ length: 40 }, (_, at) => 'a "word" \n'.repeat(at % 7))
  const usage = { prompt_tokens: 7, completion_tokens: 77 }
  const streamOf = (name: PresetName) => [
    ': a comment\n\n',
    ...(name === 'openai'
      ? texts.map((content) => event({ choices: [{ delta: { content } }], usage: null }))
      : texts.map((text) => event({ type: 'content_block_delta', delta: { text } }, 'content_block_delta'))),
    event({ type: 'ping' }),
  ]
  for (const name of ['openai', 'anthropic'] as const) {
    const stream = streamOf(name)
    const whole = used(preset(name), 'text/event-stream', [stream.join('')])
    expect(whole).toMatchObject({ output_tokens: expect.any(Number), basis: 'counted' })
    expect(used(preset(name), 'text/event-stream', stream)).toEqual(whole)
    expect(used(preset(name), 'text/event-stream', [...stream.join('')])).toEqual(whole)
  }
  const stream = [...streamOf('openai'), event({ choices: [], usage }), 'data: [DONE]\n\n']
  expect(used(preset('openai'), 'text/event-stream', stream)).toMatchObject({ tokens: 84, basis: 'reported' })
  // An event that goes on in the next piece.
  const [first = '', second = ''] = [stream.at(-2)?.slice(0, 60), stream.at(-2)?.slice(60)]
  expect(used(preset('openai'), 'text/event-stream', [...stream.slice(0, -2), first, second])).toMatchObject({
    tokens: 84,
    basis: 'reported',
  })
})

test('What was seen of an answer counts whatever it is made of, and of one that could not be read all bytes', () => {
  const calls = Array.from({ length: 30 }, () =>
    event({ choices: [{ delta: { function_call: { arguments: 'x=1;' } } }] }),
  )
  expect(used(preset('openai'), 'text/event-stream', calls)).toMatchObject({ output_tokens: 40, basis: 'counted' })
  expect(used(preset('openai'), 'text/plain', ['x'], { bytesOut: 900 })).toMatchObject({ output_tokens: 300 })
})

test('A usage that cannot be is none', () => {
  for (const tokens of [-1, 1.5, 1e15, '7', null]) {
    const answer = JSON.stringify({ usage: { prompt_tokens: tokens, completion_tokens: 3 } })
    expect(used(preset('openai'), 'application/json', [answer])).toMatchObject({ basis: 'counted' })
  }
})

test('Units of your own come from where the meter says, and stay held where the answer does not say', () => {
  expect(used(rows, 'application/json', ['{"items":[1,2,3]}'])).toMatchObject({ rows: 3, pages: 1_000 })
  const stream = [event({ n: 4 }, 'row'), event({ n: 5 }, 'done'), event({ n: 6 }, 'row')]
  expect(used(rows, 'text/event-stream', stream)).toMatchObject({ last: 5, rows: 1_000, basis: 'bound' })
})

test('Callers cannot invent more values of a dimension than it may have, and a day later there is space again', () => {
  const values = new DimensionValues()
  const reader = meterReaderOf(preset('openai'))
  const of = (model: string, nowMs = 0) => values.bounded(reader, new Map([['model', model]]), nowMs).get('model')
  for (let n = 0; n < 200; n += 1) expect(of(`m${n}`)).toBe(`m${n}`)
  expect([of('m200'), of('m7'), of('x'.repeat(129))]).toEqual(['_other', 'm7', '_other'])
  expect(of('m200', 86_400_000)).toBe('m200')
})
