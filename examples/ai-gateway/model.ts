import { createServer, type Server } from 'node:http'
import { json } from 'node:stream/consumers'

interface Completion {
  readonly model: string
  readonly max_tokens: number
  readonly stream?: boolean
  readonly messages: readonly { readonly content: string }[]
}

/**
 * Stands for a supplier of a language model: OpenAI's chat completions, each word a token. It answers in as many words
 * as it is asked for, and only to `key`.
 */
export const createModel = (key: string): Server =>
  createServer(async (request, response) => {
    const { model, max_tokens: most, stream, messages } = (await json(request)) as Completion
    if (request.headers.authorization !== `Bearer ${key}`) {
      response.writeHead(401).end()
      return
    }
    const prompt = messages.map(({ content }) => content).join(' ')
    const words = Math.min(most, Number(/\b(\d+) words\b/.exec(prompt)?.[1] ?? 10))
    const usage = { prompt_tokens: prompt.split(' ').length, completion_tokens: words }
    if (stream !== true) {
      response.setHeader('content-type', 'application/json')
      const message = { role: 'assistant', content: 'word '.repeat(words) }
      response.end(JSON.stringify({ model, choices: [{ index: 0, message }], usage }))
      return
    }
    response.setHeader('content-type', 'text/event-stream')
    const say = (event: object) => response.write(`data: ${JSON.stringify({ model, ...event })}\n\n`)
    for (let word = 0; word < words; word += 1) say({ choices: [{ index: 0, delta: { content: 'word ' } }] })
    say({ choices: [], usage })
    response.end('data: [DONE]\n\n')
  })
