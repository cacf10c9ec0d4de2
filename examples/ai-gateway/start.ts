import { randomUUID } from 'node:crypto'
import type { RunningWeir } from '../running-weir.ts'
import { createModel } from './model.ts'

/** What a customer's program asks, with the most tokens that it lets the model write. */
const questions = [
  { content: 'Say hello in 40 words', max_tokens: 100 },
  { content: 'Explain a log in 600 words', max_tokens: 1_000, stream: true },
  { content: 'Write a story of 6000 words', max_tokens: 6_500, stream: true },
  { content: 'Say good night in 40 words', max_tokens: 2_000 },
]

/** Tokens of a language model behind Weir: the most is held before an answer, and settled to what it took. */
export async function start(weir: RunningWeir): Promise<void> {
  const supplierKey = randomUUID()
  const url = await weir.listen(createModel(supplierKey))
  await weir.addPolicy('ai-gateway', { 'example-ai': { url, headers: { authorization: `Bearer ${supplierKey}` } } })
  const subject = await weir.addSubject('writer', 'example-ai')
  const key = await weir.addKey(subject)

  let tokens = 0
  for (const { content, stream = false, max_tokens } of questions) {
    const answer = await fetch(`${weir.proxy}/example/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'small', max_tokens, stream, messages: [{ role: 'user', content }] }),
    })
    const text = await answer.text()
    const left = /"example-tokens";r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]
    if (answer.status === 200) {
      const used = sumOf(text)
      tokens += used
      weir.say(`"${content}"${stream ? ', streamed' : ''}: ${left} tokens left while it was written; it took ${used}`)
      await weir.until('the answer is settled', async () => (await weir.unitsOf(subject, 'tokens')) === tokens)
    } else {
      const { error }: { error: { code: string; message: string } } = JSON.parse(text)
      weir.say(`"${content}": ${answer.status} ${error.code}: ${error.message}`)
    }
  }
  await weir.run('usage', '--subject', subject, '--unit', 'tokens', '--by', 'model,basis')
  await weir.run('usage', '--subject', subject, '--unit', 'example_usd', '--by', 'model')
  weir.say(`Try it: curl -N ${weir.proxy}/example/v1/chat/completions -H 'Authorization: Bearer ${key}' -d '${sample}'`)
}

const sample = '{"model":"small","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"Say 20 words"}]}'

/** The tokens that an answer says it took, whole or in its last event. */
function sumOf(text: string): number {
  const [, input = 0, output = 0] = /"prompt_tokens":(\d+),"completion_tokens":(\d+)/.exec(text) ?? []
  return Number(input) + Number(output)
}
