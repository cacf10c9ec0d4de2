import { waitUntil } from '@weir/runtime/wait-until.ts'

/** A console knows the newest policy, and a ClickHouse that was started answers, within seconds. */
const wait = { deadlineMs: 30_000, everyMs: 250 }

/** Asks again while the answer is 503, which changes nothing: a month is closed once its policy's history is there. */
export async function untilAvailable(ask: () => Promise<Response>): Promise<Response> {
  let answer = await ask()
  await waitUntil(async () => {
    if (answer.status !== 503) return true
    await answer.arrayBuffer()
    answer = await ask()
    return answer.status !== 503
  }, wait)
  return answer
}
