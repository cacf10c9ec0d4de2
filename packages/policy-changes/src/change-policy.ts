import { setImmediate } from 'node:timers/promises'
import type { ChangeLineV1, ChangePositionV1, PolicyMessage } from '@weir/contracts/policy.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { Steps } from '@weir/core/steps.ts'
import { rootsOf } from '@weir/policy/ancestors.ts'
import type { EntityChange } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import { changeRejected, conflict, policyUnavailable } from './change-problems.ts'
import type { ChangeStore } from './change-store.ts'
import { ChangePublisher, type PublishedChange, splitChanges, triesMax } from './publish-change.ts'

/** Changes that wait in the queue: each takes some milliseconds, so that the last one waits about a second. */
const waitingMax = 100

/** The change that a route plans on the policy in force once the change is first in the queue. */
export type ChangePlan<T> =
  | {
      readonly kind: 'change'
      readonly changes: readonly EntityChange[]
      /** The lines of the audit record, the most important one first. */
      readonly lines: readonly ChangeLineV1[]
      /** Records that are published with those of the entities. */
      readonly notices?: readonly PolicyMessage[]
      /** Effects elsewhere, made once the change is known to be right and before it is published. */
      readonly before?: () => Promise<Problem | undefined>
      readonly answer: T
    }
  /** The policy says so already, or the caller only asked what would change. */
  | { readonly kind: 'nothing'; readonly answer: T }
  | Rejected

/** A change that was not made, with the problem that the caller gets. */
export interface Rejected {
  readonly kind: 'problem'
  readonly problem: Problem
}

/** Returns the outcome of a change that is not made. */
export const reject = (problem: Problem): Rejected => ({ kind: 'problem', problem })

/** The outcome of a change. */
export type Changed<T> =
  /** `change` is the id in the audit; undefined where nothing was changed. Every such change is in force here. */
  { readonly kind: 'done'; readonly change: string | undefined; readonly answer: T } | Rejected

type MakePlan<T> = (state: PolicyState) => ChangePlan<T> | Promise<ChangePlan<T>>

/** Requests wait no longer than this for a large policy; a pause costs microseconds. */
const sliceMs = 10

/** Runs all steps, and yields to the event loop every few milliseconds. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  let startMs = performance.now()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (performance.now() - startMs < sliceMs) continue
    await setImmediate()
    startMs = performance.now()
  }
}

const away = 'Kafka did not accept the change, so nothing was changed. Try again when Kafka is available.'
const awayBetween =
  'Kafka did not take all of this change: its first batches are in force. Make the same change again when Kafka is available; it then changes only the rest.'
const unread = 'The policy has not been read yet: Kafka does not respond, and there is no earlier copy.'
const unseen =
  'The change is stored, but was not read back in time. It takes effect by itself unless another console was faster; look before you repeat it.'
const overtaken = 'Another console changed the policy before this change could be stored. Try again.'
const misfit =
  'A part of this change does not fit the policy by itself. That part was left out, and what came before it is in force. Make the change in smaller steps.'
const noPolicy =
  'There is no policy yet. Apply a file first (weir apply, or PUT /v1/policy): the first change would replace all that processes have from their own files.'

/**
 * Makes every change of the policy, one change at a time:
 * 1. The change is planned and checked as a whole on the policy in force.
 * 2. It is published as one batch that ends with its audit record, which names the last change before it.
 * 3. This process waits until it has read the batch back.
 * 4. The caller is answered.
 *
 * A stop between 2 and 4 leaves a change that is in force and in the audit, and a caller that does not know. If another
 * console was faster between 1 and 2, every process leaves the batch out, and the change is planned again, with its
 * conditions, on the policy that is in force by then. The next batch of any console writes the entities of the rejected
 * batch into the topic again, as they are in force.
 */
export class PolicyChanger {
  readonly #store: ChangeStore
  readonly #log: Logger
  readonly #publisher: ChangePublisher
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  constructor(store: ChangeStore, log: Logger) {
    this.#store = store
    this.#log = log
    this.#publisher = new ChangePublisher(store, log)
  }

  /**
   * Changes the policy. `plan` runs once all earlier changes are done: the policy that it sees is the one that it
   * changes. It runs again where another console was faster. Rejects only with a bug.
   */
  async change<T>(by: string, plan: MakePlan<T>): Promise<Changed<T>> {
    if (this.#waiting >= waitingMax) return reject(policyUnavailable(`${waitingMax} changes are already waiting.`))
    this.#waiting += 1
    const mine = this.#last.then(() => this.#run(by, plan))
    this.#last = mine.catch(() => undefined)
    try {
      return await mine
    } catch (error) {
      return reject(problemOf(error, this.#log))
    } finally {
      this.#waiting -= 1
    }
  }

  async #run<T>(by: string, makePlan: MakePlan<T>): Promise<Changed<T>> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await this.#attempt(by, makePlan)
      if (outcome === 'overtaken' && tries < triesMax) continue
      if (this.#publisher.hasLeftOut) await this.#publisher.restore(by)
      return outcome === 'overtaken' ? reject(conflict(overtaken)) : outcome
    }
  }

  async #attempt<T>(by: string, makePlan: MakePlan<T>): Promise<Changed<T> | 'overtaken'> {
    const {
      policy,
      changes: { audit },
    } = this.#store
    const { state } = policy
    const from = this.#publisher.lastChange()
    if (state === undefined) return reject(policyUnavailable(unread))
    const plan = await makePlan(state)
    // Planned on two policies: what is wrong with it may be wrong itself.
    const isOutdated = () => this.#publisher.lastChange().id !== from.id
    if (isOutdated()) return 'overtaken'
    if (plan.kind === 'problem') return plan
    if (plan.kind === 'nothing') return { kind: 'done', change: undefined, answer: plan.answer }
    if (state.size === 0 && audit.fileRevision === undefined && plan.lines[0]?.kind !== 'policy') {
      return reject(conflict(noPolicy))
    }
    const checked = await inSlices(state.checkSteps(plan.changes))
    if (isOutdated()) return 'overtaken'
    if (checked.kind === 'problems') return reject(changeRejected(checked.problems))
    const problem = await plan.before?.()
    if (problem !== undefined) return reject(problem)
    const findMoved = movesOf(state, plan.changes)
    const published = await this.#publishAll(by, plan, from)
    const moved = findMoved()
    if (moved.length > 0) this.#store.changes.onMoved?.(moved)
    return published === 'overtaken' || published.kind === 'problem' ? published : { ...published, answer: plan.answer }
  }

  /** Publishes a plan as its batches, one after the other, the first one after the change `from`. */
  async #publishAll(
    by: string,
    plan: Extract<ChangePlan<unknown>, { kind: 'change' }>,
    from: ChangePositionV1,
  ): Promise<Changed<undefined> | 'overtaken'> {
    let change: string | undefined
    let after = plan.changes.length === 0 ? undefined : from
    for (const part of await inSlices(splitChanges(plan.changes, plan.lines))) {
      const notices = change === undefined ? (plan.notices ?? []) : []
      let published: PublishedChange
      try {
        published = await this.#publisher.publish(by, part, { after, notices })
      } catch (error) {
        if (change === undefined) throw error
        return reject({ ...problemOf(error, this.#log), detail: awayBetween })
      }
      const { id, position, isSeen, isTaken } = published
      if (!isSeen) return reject(policyUnavailable(unseen))
      if (!isTaken) return 'overtaken'
      const problems = this.#store.policy.problemsOf(id)
      if (problems !== undefined) {
        await this.#publisher.restore(by)
        return reject({ ...conflict(misfit), problems })
      }
      change = id
      after = position
    }
    return { kind: 'done', change, answer: undefined }
  }
}

/** Says afterwards which of the changed subjects that were there before have another root. */
function movesOf(state: PolicyState, changes: readonly EntityChange[]): () => readonly string[] {
  const isBelow = ({ entity }: EntityChange) => typeof entity?.body.parent === 'string'
  if (!state.hasTrees && !changes.some(isBelow)) return () => []
  const put = changes.filter(({ kind, entity }) => kind === 'subject' && entity !== undefined)
  const before = new Map(put.map(({ name }) => [name, rootsOf(state.policy)(name)]))
  return function findMoved() {
    const rootOf = rootsOf(state.policy)
    return [...before].flatMap(([id, root]) => (root !== undefined && rootOf(id) !== root ? [id] : []))
  }
}

/** Turns Kafka's faults into an answer; anything else is a bug, and thrown on. */
function problemOf(error: unknown, log: Logger): Problem {
  if (!(error instanceof WeirError)) throw error
  log.error({ err: error }, 'the policy was not changed')
  if (error.code === 'KAFKA_DENIED') return policyUnavailable(`${error.message}. Nothing was changed.`)
  if (error.retryable) return policyUnavailable(away)
  return problem('internal', 'Internal error', 500, error.message)
}
