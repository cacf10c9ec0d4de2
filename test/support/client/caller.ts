import { once } from 'node:events'
import { createClient, createLimitedFetch } from '@weir/client'

/*
 * A process that calls somebody else's API through limitedFetch: `caller.ts NAME CALLS`. It says "ready", begins when
 * its standard input is closed, and ends with a line of what every call came to.
 */

const { WEIR_URL = '', WEIR_KEY = '', API_URL = '' } = process.env
const [name = '', calls = '0'] = process.argv.slice(2)
const client = createClient({ url: WEIR_URL, key: WEIR_KEY, timeoutMs: 5_000 })
/** A run takes half a minute; a machine under load gets four times that. */
const limitedFetch = createLimitedFetch({ client, timeoutMs: 120_000 })

/** What a call came to: the status of its answer, or the error that it threw. */
async function outcome(at: number): Promise<number | string> {
  try {
    const response = await limitedFetch(`${API_URL}/${name}/${at}`)
    await response.arrayBuffer()
    return response.status
  } catch (error) {
    return String(error)
  }
}

process.stdout.write('ready\n')
process.stdin.resume()
await once(process.stdin, 'end')
const outcomes = await Promise.all(Array.from({ length: Number(calls) }, (_, at) => outcome(at)))
process.stdout.write(`${JSON.stringify(outcomes)}\n`)
await client.close()
