/**
 * Asks one supplier's API by its own SDK, which gets its address and its key from the environment alone.
 *
 * `node client.ts openai|@anthropic-ai/sdk CASES`: a line of JSON for each case. `SDKS` is the folder that has them.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type { Asking, Said } from './ask-suppliers.ts'

type Call = (args: object) => Streamed & PromiseLike<object>
type Streamed = Readonly<
  Record<'finalChatCompletion' | 'finalMessage' | 'finalResponse', (() => Promise<object>) | undefined>
>
type Tree = { readonly [name: string]: Tree } & Call
interface Client {
  withOptions(options: { defaultHeaders: object; apiKey: string }): Client
}
type StatusError = Error & { readonly status?: number }

const [name = '', cases = '[]'] = process.argv.slice(2)
const Sdk = createRequire(`${process.env.SDKS}/`)(name).default as new (options: { fetch: typeof fetch }) => Client

let exchanges: Promise<Said['exchanges'][number]>[] = []
const watched: typeof fetch = async (url, init) => {
  const at = performance.now()
  const answer = await fetch(url, init)
  const { status, headers } = answer
  const bytes = answer.clone().arrayBuffer()
  const [retryAfter, decision] = [headers.get('retry-after'), headers.get('weir-decision')]
  exchanges.push(
    bytes.then((all) => {
      const sha256 = createHash('sha256').update(Buffer.from(all)).digest('hex')
      return { at, status, retryAfter, decision, sha256 }
    }),
  )
  return answer
}

async function ask(client: Client, { call, args, fill }: Asking): Promise<object> {
  // What Python spells count_tokens is countTokens.
  const names = call.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()).split('.')
  const owner = names.slice(0, -1).reduce<Tree>((at, one) => at[one] as Tree, client as unknown as Tree)
  const content = fill === undefined ? undefined : [{ role: 'user', content: 'x'.repeat(fill) }]
  const body = content === undefined ? args : { ...args, messages: content }
  const answer = (owner[names.at(-1) ?? ''] as Call).call(owner, body)
  if (names.at(-1) !== 'stream') return answer
  const final = (['finalChatCompletion', 'finalResponse', 'finalMessage'] as const).find((one) => one in answer)
  return (await (final && answer[final]?.call(answer))) ?? {}
}

/** The classes of an error, as far as they are the SDK's. */
function typesOf(error: object): string[] {
  const found: string[] = []
  for (let at = Object.getPrototypeOf(error); at !== null; at = Object.getPrototypeOf(at))
    found.push(at.constructor.name)
  return found
}

const client = new Sdk({ fetch: watched })
for (const one of JSON.parse(cases) as Asking[]) {
  exchanges = []
  const own = client.withOptions({ defaultHeaders: one.headers, apiKey: one.key })
  const said = await ask(own, one).then(
    (result) => ({ result }),
    (error: StatusError) => ({ error: { types: typesOf(error), status: error.status ?? 0, message: error.message } }),
  )
  process.stdout.write(`${JSON.stringify({ name: one.name, ...said, exchanges: await Promise.all(exchanges) })}\n`)
}
