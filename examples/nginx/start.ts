import { createServer } from 'node:http'
import type { RunningWeir } from '../running-weir.ts'
import { startNginx } from '../start-nginx.ts'

/** An API behind nginx, which asks Weir before it passes a request on. */
export async function start(weir: RunningWeir): Promise<void> {
  await weir.addPolicy('nginx')
  const key = await weir.addKey(await weir.addSubject('shop', 'example-nginx'))
  const served: string[] = []
  const api = createServer(({ method, url, headers }, response) => {
    served.push(`${method} ${url} of ${headers['x-weir-subject']}`)
    response.end('hello\n')
  })
  const nginx = await startNginx(weir, await weir.listen(api))
  weir.say(`nginx listens on ${nginx.url}, in front of an API that knows nothing of Weir.`)

  const ask = async (headers: Readonly<Record<string, string>>) => {
    const answer = await fetch(`${nginx.url}/hello`, { headers })
    await answer.arrayBuffer()
    const [first = ''] = answer.headers.get('ratelimit')?.split(', ') ?? []
    const retry = answer.headers.get('retry-after')
    weir.say(`GET /hello -> ${answer.status}  RateLimit: ${first}${retry === null ? '' : `  Retry-After: ${retry}`}`)
  }
  weir.say('Without a key, then four times with one, which has a limit of three:')
  await ask({})
  for (let n = 0; n < 4; n += 1) await ask({ 'x-api-key': key })
  weir.say(`The API has served ${served.length} requests: ${served.join(', ')}`)
  weir.say(`Try it: curl -i ${nginx.url}/hello -H 'X-API-Key: ${key}'`)
}
