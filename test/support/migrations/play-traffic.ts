import { parseList } from 'structured-headers'
import { type Answer, type Sent, send } from '../gateways/send.ts'

/** The same request several times: at once, as a burst, or one after the other. */
export interface Step {
  readonly what: string
  readonly times: number
  readonly sent: Sent
  readonly inTurn?: boolean
}

/** What clients see of a step, whatever the order of a burst. */
export interface Seen {
  readonly what: string
  /** How many answers had which status. */
  readonly statuses: Readonly<Record<string, number>>
  /** Units left as the headers of admitted requests say it, descending; empty where none say anything. */
  readonly remaining: readonly number[]
}

/** What Weir's headers say where there is no limit; the libraries send none then. */
const unlimited = 999_999_999_999_999

function remainingIn({ headers }: Answer): number | undefined {
  const older = headers['ratelimit-remaining'] ?? headers['x-ratelimit-remaining']
  const structured = headers.ratelimit === undefined ? [] : parseList(String(headers.ratelimit))
  const remaining = older === undefined ? structured[0]?.[1].get('r') : Number(older)
  return typeof remaining === 'number' && remaining !== unlimited ? remaining : undefined
}

const isDefined = (value: number | undefined) => value !== undefined

function summed({ what }: Step, answers: readonly Answer[]): Seen {
  const statuses: Record<string, number> = {}
  for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1
  const admitted = answers.filter(({ status }) => status !== 429)
  const remaining = admitted.map(remainingIn).filter(isDefined)
  return { what, statuses, remaining: remaining.toSorted((a, b) => b - a) }
}

/** Sends the steps in order, each request to the next of the origins in turn. */
export async function playTraffic(origins: readonly string[], steps: readonly Step[]): Promise<readonly Seen[]> {
  const seen: Seen[] = []
  let next = 0
  const ask = (sent: Sent) => send(origins[next++ % origins.length] ?? '', sent)
  for (const step of steps) {
    const answers: Answer[] = []
    const asked = Array.from({ length: step.times }, () => step.sent)
    if (step.inTurn === true) for (const sent of asked) answers.push(await ask(sent))
    else answers.push(...(await Promise.all(asked.map(ask))))
    seen.push(summed(step, answers))
  }
  return seen
}
