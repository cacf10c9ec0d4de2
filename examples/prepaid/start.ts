import { createClient } from '@weir/client'
import type { RunningWeir } from '../running-weir.ts'

/** A prepaid quota: alerts before it ends, a page for the customer, and a top-up that holds at once. */
export async function start(weir: RunningWeir): Promise<void> {
  await weir.addPolicy('prepaid')
  const subject = await weir.addSubject('customer', 'example-prepaid')
  const client = createClient({ url: weir.api, key: await weir.addKey(subject), timeoutMs: 10_000 })
  weir.atEnd(() => client.close())

  const use = async () => {
    const { allowed, limits } = await client.check()
    return allowed ? `${limits[0]?.remaining}` : 'refused'
  }
  const areRaised = (count: number) =>
    weir.until(`${count} of the alerts are raised`, async () => {
      const { items } = await weir.ask<{ items: unknown[] }>(`GET /v1/alerts?subject=${subject}`)
      return items.length === count
    })
  const left = []
  for (let n = 0; n < 11; n += 1) {
    left.push(await use())
    // The first alert is then the older one in the list.
    if (n === 7) await areRaised(1)
  }
  weir.say(`Eleven calls of a customer with 10 credits a month leave: ${left.join(' ')}`)

  await areRaised(2)
  await weir.run('alerts', 'ls', '--subject', subject)

  const { token } = await weir.ask<{ token: string }>(`POST /v1/subjects/${subject}/portal`, { expires_in: '1h' })
  weir.say(`The customer's own page, for an hour: ${weir.console}/me#${token}`)

  await weir.ask(`PUT /v1/subjects/${subject}`, {
    plan: 'example-prepaid',
    limits: { 'example-credits': { size: 15 } },
  })
  const topUp = performance.now()
  await weir.until('the top-up is in force', async () => (await client.check({ peek: true })).allowed)
  weir.say(`Topped up by 5 credits, in force after ${Math.ceil(performance.now() - topUp)} ms.`)
  weir.say(`The next call leaves: ${await use()}`)
}
