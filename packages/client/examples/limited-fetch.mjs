// Calls somebody else's API, never faster than a limit that every process of ours shares.
import { createClient, createLimitedFetch } from '@weir/client'

const client = createClient({ url: process.env.WEIR_URL, key: process.env.WEIR_KEY })
const limitedFetch = createLimitedFetch({ client, timeoutMs: 30_000 })

const numbers = [1, 2, 3, 4, 5, 6]
const answers = await Promise.all(numbers.map((number) => limitedFetch(`${process.env.API_URL}/issues/${number}`)))
console.log(answers.map(({ status }) => status).join(' '))
await client.close()
