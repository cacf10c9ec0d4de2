import { createClient } from '@weir/client'
import type { RunningWeir } from '../running-weir.ts'
import { createModel } from './model.ts'

interface Completion {
  readonly usage: { readonly total_tokens: number }
}

const questions = [
  'Say hello in 40 words',
  'Explain a log in 600 words',
  'Write a story of 2000 words',
  'Say good night in 40 words',
]

/** Tokens of a language model: an estimate is charged before the answer, and settled to what it took. */
export async function start(weir: RunningWeir): Promise<void> {
  await weir.addPolicy('llm-tokens')
  const subject = await weir.addSubject('writer', 'example-llm')
  const client = createClient({ url: weir.api, key: await weir.addToken('example-llm', 'check'), timeoutMs: 10_000 })
  weir.atEnd(() => client.close())
  const model = await weir.listen(createModel())

  let units = 0
  for (const question of questions) {
    const check = await client.check({ subject, route: 'POST /example/chat' })
    const left = check.limits[0]?.remaining
    if (!check.allowed) {
      weir.say(`"${question}": refused, for the estimate of 1000 does not fit into the ${left} tokens left`)
      continue
    }
    const answer = await fetch(model, { method: 'POST', body: JSON.stringify({ question }) })
    const { usage }: Completion = JSON.parse(await answer.text())
    const { adjustment } = await client.settle({ subject, id: check.id ?? '', cost: usage.total_tokens })
    units += usage.total_tokens
    const sign = adjustment > 0 ? '+' : ''
    weir.say(`"${question}": charged 1000, ${left} left; took ${usage.total_tokens}, settled by ${sign}${adjustment}`)
  }
  await weir.untilCounted(subject, { count: questions.length, cost: units })
  await weir.run('usage', '--subject', subject, '--by', 'route,outcome')
}
