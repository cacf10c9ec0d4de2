import { WeirError } from '@weir/core/errors.ts'
import { count } from '@weir/core/format.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { CommandContext } from '../command-context.ts'
import { paceStep } from './pace.ts'
import { type LoadStep, requestsMax } from './profile.ts'
import { type AnsweredDecision, answerDeadlineMs, type LoadRequest, type Sender } from './sender.ts'
import { Tally } from './tally.ts'

/** What was decided, and between which times of this machine's clock. */
export type OnDecision = (asked: LoadRequest, decision: AnsweredDecision, sentMs: number, answeredMs: number) => void

interface Load {
  readonly steps: readonly LoadStep[]
  readonly next: () => LoadRequest
  readonly sender: Sender
  readonly onDecision: OnDecision
}

/** After this many failures without a single answer no server is there. */
const failuresMax = 100

/** Shows how far a load is. */
function tell(tally: Tally, steps: readonly LoadStep[], beganMs: number, { progress }: CommandContext): void {
  const wholeMs = steps.reduce((sum, { forMs }) => sum + forMs, 0)
  const { sent, answered, failed } = tally.all
  const text = `${count(sent)} sent, ${count(sent - answered - failed)} under way`
  progress.tell(text, (performance.now() - beganMs) / wholeMs)
}

/**
 * Sends the requests of all steps, one step after the other, and waits for the last answers. Ends at the signal of the
 * context with what came until then. Throws TARGET_UNAVAILABLE where no request is answered.
 */
export async function runLoad({ steps, next, sender, onDecision }: Load, context: CommandContext): Promise<Tally> {
  const tally = new Tally(steps)
  const { all } = tally
  const giveUp = new AbortController()
  const signal = AbortSignal.any([context.signal, giveUp.signal])
  const underWay = () => all.sent - all.answered - all.failed
  const beganMs = performance.now()
  let lastCode = ''
  for (const [at, step] of steps.entries()) {
    const own = tally.steps[at]
    if (own === undefined || signal.aborted) break
    const begin = (dueMs: number) =>
      new Promise<void>((done) => {
        const asked = next()
        // Until it is written, for a request that never is.
        let [sentMs, sentAtMs] = [performance.now(), Date.now()]
        let isSent = false
        own.sent += 1
        all.sent += 1
        if (all.sent === requestsMax) giveUp.abort()
        const onSent = () => {
          if (!isSent) [sentMs, sentAtMs] = [performance.now(), Date.now()]
          isSent = true
        }
        sender.send(asked, onSent, (answer) => {
          tally.end(own, answer, dueMs, sentMs)
          // Date.now() is cut to whole milliseconds.
          if (answer.decision !== undefined) onDecision(asked, answer.decision, sentAtMs, Date.now() + 1)
          lastCode = answer.code
          if (all.answered === 0 && all.failed >= failuresMax) giveUp.abort()
          done()
        })
      })
    const stepBeganMs = performance.now()
    const shown = setInterval(() => tell(tally, steps, beganMs, context), 200)
    own.unsent = await paceStep(step, { begin, underWay, signal })
    clearInterval(shown)
    all.unsent += own.unsent
    own.seconds = (performance.now() - stepBeganMs) / 1_000
    all.seconds += own.seconds
  }
  await waitUntil(() => underWay() === 0, { deadlineMs: answerDeadlineMs + 1_000 })
  if (all.answered > 0 || all.failed === 0) return tally
  throw new WeirError(
    'TARGET_UNAVAILABLE',
    `None of ${all.failed} requests was answered: ${lastCode}. Does Weir run there?`,
  )
}
