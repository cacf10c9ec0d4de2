import { inProject } from '@weir/cli/project.ts'
import type { RunningWeir } from '../running-weir.ts'

/** A Fastify app with `weirFastify`: each customer's key has the limits of its plan. */
export async function start(weir: RunningWeir): Promise<void> {
  await weir.addPolicy('fastify')
  const free = await weir.addKey(await weir.addSubject('ann', 'example-fastify-free'))
  const paid = await weir.addKey(await weir.addSubject('bob', 'example-fastify-paid'))
  const file = 'packages/client/examples/fastify.mjs'
  const token = await weir.addToken('example-fastify', 'check')
  let said: string | undefined
  const variables = { WEIR_URL: weir.api, WEIR_KEY: token, PORT: '0' }
  weir.program([process.execPath, inProject(file)], variables, (line) => (said = line))
  const url = await weir.until('the application says where it listens', async () => said)
  weir.say(`The application ${file} listens on ${url}.`)

  const ask = async (who: string, headers: Readonly<Record<string, string>>) => {
    const answer = await fetch(`${url}/hello`, { headers })
    const { left, detail }: { left?: number; detail?: string } = JSON.parse(await answer.text())
    weir.say(`${who}: GET /hello -> ${answer.status}  ${detail ?? `${left} left`}`)
  }
  await ask('without a key', {})
  for (let n = 0; n < 3; n += 1) await ask('ann, free', { 'x-api-key': free })
  for (let n = 0; n < 3; n += 1) await ask('bob, paid', { 'x-api-key': paid })
  weir.say(`Try it: curl -i ${url}/hello -H 'X-API-Key: ${paid}'`)
}
