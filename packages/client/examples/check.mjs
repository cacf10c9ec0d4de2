// Asks whether a request may happen, before anything is done for it.
import { createClient } from '@weir/client'

const weir = createClient({ url: process.env.WEIR_URL, key: process.env.WEIR_KEY })

for (const attempt of [1, 2, 3]) {
  const { allowed, deniedBy, retryAfterMs } = await weir.check({ route: 'POST /v1/search', cost: 5 })
  console.log(attempt, allowed ? 'allowed' : `${deniedBy} is used up, for ${Math.ceil(retryAfterMs / 1_000)} s`)
}
await weir.close()
