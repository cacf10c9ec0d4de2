import { createServer, type Server } from 'node:http'
import { json } from 'node:stream/consumers'

/** How many words a question asks for. */
const wordsWanted = (question: string) => Number(/\b(\d+) words\b/.exec(question)?.[1] ?? 10)

/** Stands for a server of a language model: answers in as many words as it is asked for, each of one token. */
export const createModel = (): Server =>
  createServer(async (request, response) => {
    const { question } = (await json(request)) as { readonly question: string }
    const answer = Array(wordsWanted(question)).fill('word').join(' ')
    const tokens = question.split(' ').length + answer.split(' ').length
    response.end(JSON.stringify({ answer, usage: { total_tokens: tokens } }))
  })
