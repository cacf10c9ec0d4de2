import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import type { RunningWeir } from '../running-weir.ts'
import { copySnippet, startNginx } from '../start-nginx.ts'

/** Writes the addresses that Weir blocks into nginx's list, every second, by the script of docs/integrations/nginx. */
async function keepList(weir: RunningWeir, dir: string): Promise<void> {
  const header = join(dir, 'weir-token.header')
  await writeFile(header, `Authorization: Bearer ${await weir.addToken('example-otp', 'read')}\n`, { mode: 0o600 })
  await copySnippet(dir, 'weir-blocked.sh', {
    '/etc/nginx/': `${dir}/`,
    'http://127.0.0.1:8090/v1/blocks?format=text&limit=otp': `${weir.console}/v1/blocks?format=text&limit=example-otp`,
    'nginx -s reload': `nginx -p ${dir} -e error.log -c nginx.conf -s reload`,
  })
  const stop = new AbortController()
  const rounds = (async () => {
    while (!stop.signal.aborted) {
      await once(spawnBound(['sh', join(dir, 'weir-blocked.sh')], { stdio: 'inherit' }), 'exit')
      await delay(1_000, undefined, { signal: stop.signal }).catch(() => undefined)
    }
  })()
  weir.atEnd(() => {
    stop.abort()
    return rounds
  })
}

/** One-time passwords: who guesses is blocked by address, at nginx too, until the block is lifted. */
export async function start(weir: RunningWeir): Promise<void> {
  await weir.addPolicy('otp')
  const subject = await weir.addSubject('shop', 'example-otp')
  const key = await weir.addKey(subject)
  const nginx = await startNginx(weir, await weir.listen(createServer((_, response) => response.end('wrong code\n'))))
  await keepList(weir, nginx.dir)

  /** All of 127.0.0.0/8 is this machine. */
  const guess = async (localAddress: string) => {
    const options = { method: 'POST', localAddress, agent: false, headers: { 'x-api-key': key } }
    const [answer]: IncomingMessage[] = await once(request(`${nginx.url}/example/otp`, options).end(), 'response')
    answer?.resume()
    return { status: answer?.statusCode, isOfWeir: answer?.headers['weir-decision'] !== undefined }
  }
  for (const address of ['127.0.0.11', '127.0.0.12', '127.0.0.13']) {
    const statuses = []
    for (let n = 0; n < 4; n += 1) statuses.push((await guess(address)).status)
    weir.say(`${address} guesses four codes -> ${statuses.join(' ')}`)
  }
  weir.say(`127.0.0.14 sends its first code -> ${(await guess('127.0.0.14')).status}`)

  const blocks = await weir.until('the blocks are listed', async () => {
    const { items } = await weir.ask<{ items: { id: string; ip: string }[] }>(`GET /v1/blocks?subject=${subject}`)
    return items.length === 3 && items
  })
  await weir.run('blocks', '--subject', subject)
  const refused = await weir.until('nginx refuses it', async () => {
    const { status, isOfWeir } = await guess('127.0.0.12')
    return !isOfWeir && status
  })
  weir.say(`nginx has the list: 127.0.0.12 -> ${refused}, without a question to Weir`)

  await weir.run('blocks', 'lift', blocks.find(({ ip }) => ip === '127.0.0.12')?.id ?? '', '--forget')
  await weir.until('nginx passes it on', async () => (await guess('127.0.0.12')).status === 200)
  weir.say('127.0.0.12 -> 200 again, and the others are blocked until two minutes have passed')
  weir.say(`Try it: curl -X POST --interface 127.0.0.15 ${nginx.url}/example/otp -H 'X-API-Key: ${key}'`)
}
