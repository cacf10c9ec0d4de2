import { until } from '../until.ts'
import type { Stack } from './stack.ts'

/** Another process may write the record a minute after the one that settled it died. */
const settledWithinMs = 150_000

const ask = (port: number, { secrets }: Stack, path: string, body?: object) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${secrets.adminToken}`, 'content-type': 'application/json' },
  })

/** As a person does it: to these units, or to what Redis has already. */
export async function settleHeld(stack: Stack, decision: object, units: object): Promise<void> {
  let used = units
  await until(async () => {
    const answer = await ask(stack.ports.api, stack, '/v1/settle', { ...decision, units: used })
    const found = (await answer.json()) as { readonly settled_units?: object }
    if (answer.status === 409) used = found.settled_units ?? used
    else if (answer.status !== 200 && answer.status !== 503) throw new Error(JSON.stringify(found))
    return answer.status === 200
  }, settledWithinMs)
}

interface HeldDecision {
  readonly id: string
  readonly held: Readonly<Record<string, number>>
}

/** The decisions of a subject that hold units and were not settled, at most 1,000. */
export async function unsettledOf(stack: Stack, subject: string): Promise<readonly HeldDecision[]> {
  const query = `subject=${subject}&unsettled=true&limit=1000`
  const answer = await ask(stack.ports.console, stack, `/v1/decisions?${query}`)
  if (!answer.ok) throw new Error(await answer.text())
  return ((await answer.json()) as { readonly rows: readonly HeldDecision[] }).rows
}
