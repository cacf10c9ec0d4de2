import type { ChangeLineV1, PlaceOfChangeV1, PolicyMessage } from '@weir/contracts/policy.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { EntityChange } from '@weir/policy/entities.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type Problem, problemType } from '@weir/runtime/problem.ts'
import { changeRefused, conflict, policyUnavailable } from './http/problems.ts'
import { inSlices } from './in-slices.ts'
import type { Ports } from './ports.ts'
import { type ChangePublisher, createChangePublisher, triesMax } from './publish-change.ts'
import { splitChanges } from './split-changes.ts'

/** Changes that wait for their turn: each takes some milliseconds, and whoever waits longer than a second asks again. */
const waitingMax = 100

/** What a route makes of the policy as it is when the change's turn has come. */
export type Plan<T> =
  | {
      readonly kind: 'change'
      readonly changes: readonly EntityChange[]
      /** What the audit says; the first line first. */
      readonly lines: readonly ChangeLineV1[]
      /** Records that go with it beside the entities'. */
      readonly notices?: readonly PolicyMessage[]
      /** Effects elsewhere, made once the change is known to be right and before it is published. */
      readonly before?: () => Promise<Problem | undefined>
      readonly answer: T
    }
  /** It is so already, or was only asked about. */
  | { readonly kind: 'nothing'; readonly answer: T }
  | { readonly kind: 'problem'; readonly problem: Problem }

export type Changed<T> =
  /** `change` is the id in the audit; undefined where there was nothing to change. Every change answered so is in force here. */
  | { readonly kind: 'done'; readonly change: string | undefined; readonly answer: T }
  | { readonly kind: 'problem'; readonly problem: Problem }

export interface PolicyChanger {
  /**
   * `plan` runs when all changes before are through: what it sees is what it changes. It runs again where another console
   * was faster.
   */
  change<T>(by: string, plan: (state: PolicyState) => Plan<T> | Promise<Plan<T>>): Promise<Changed<T>>
}

const away = 'Kafka did not take the change. Nothing was changed by halves; try again when it is back.'
const unread = 'The policy was not read yet: Kafka does not answer, and there is no copy of an earlier time.'
const unseen =
  'The change is stored, but was not read back in time. It takes effect by itself unless another console was faster; look before you repeat it.'
const overtaken = 'Other consoles have changed the policy each time before this change could be stored. Try again.'
const misfit =
  'A part of this change does not fit the policy by itself. That part was left out, and what came before it is in force. Make the change in smaller steps.'
const noPolicy =
  'There is no policy yet. Apply a file first (weir apply, or PUT /v1/policy): the first change would replace all that processes have from their own files.'

/**
 * The one way in which the policy is changed, one change at a time: 1. planned and checked as a whole on the policy in
 * force, 2. published as one batch that ends with its audit record, which names the change that was the last one then,
 * 3. waited for until this process has read it back, 4. answered. A stop between 2 and 4 leaves a change that is in force
 * and in the audit, and a caller that does not know. If another console was faster between 1 and 2, every process leaves
 * the batch out; it is planned again on the policy that is in force by then, conditions and all. What it wrote into the
 * topic is written again as it is in force, with the next batch of any console.
 */
export function createPolicyChanger(ports: Ports, log: Logger): PolicyChanger {
  const { policy, audit } = ports
  let turn: Promise<unknown> = Promise.resolve()
  let waiting = 0
  const publisher = createChangePublisher(ports, log)

  const attempt = async <T>(
    by: string,
    makePlan: (state: PolicyState) => Plan<T> | Promise<Plan<T>>,
  ): Promise<Changed<T> | 'overtaken'> => {
    const { state } = policy
    const from = publisher.lastChange()
    if (state === undefined) return { kind: 'problem', problem: policyUnavailable(unread) }
    const plan = await makePlan(state)
    // Planned on two policies: what is wrong with it may be wrong itself.
    const isOutdated = () => publisher.lastChange().id !== from.id
    if (isOutdated()) return 'overtaken'
    if (plan.kind === 'problem') return plan
    if (plan.kind === 'nothing') return { kind: 'done', change: undefined, answer: plan.answer }
    if (state.size === 0 && audit.fileRevision === undefined && plan.lines[0]?.kind !== 'policy') {
      return { kind: 'problem', problem: conflict(noPolicy) }
    }
    const checked = await inSlices(state.checkSteps(plan.changes))
    if (isOutdated()) return 'overtaken'
    if (checked.kind === 'problems') return { kind: 'problem', problem: changeRefused(checked.problems) }
    const problem = await plan.before?.()
    if (problem !== undefined) return { kind: 'problem', problem }
    const published = await publishAll(by, plan, { publisher, policy, from })
    return published === 'overtaken' || published.kind === 'problem' ? published : { ...published, answer: plan.answer }
  }

  const run = async <T>(
    by: string,
    makePlan: (state: PolicyState) => Plan<T> | Promise<Plan<T>>,
  ): Promise<Changed<T>> => {
    for (let tries = 1; ; tries += 1) {
      const outcome = await attempt(by, makePlan)
      if (outcome === 'overtaken' && tries < triesMax) continue
      if (publisher.hasLeftOut) await publisher.restore(by)
      return outcome === 'overtaken' ? { kind: 'problem', problem: conflict(overtaken) } : outcome
    }
  }

  return {
    async change(by, plan) {
      if (waiting >= waitingMax) {
        return { kind: 'problem', problem: policyUnavailable(`${waitingMax} changes are waiting already.`) }
      }
      waiting += 1
      const mine = turn.then(() => run(by, plan))
      turn = mine.catch(() => undefined)
      try {
        return await mine
      } catch (error) {
        return { kind: 'problem', problem: problemOf(error, log) }
      } finally {
        waiting -= 1
      }
    },
  }
}

/** A plan as its batches, one after the other, the first one after `from`. */
async function publishAll(
  by: string,
  plan: Extract<Plan<unknown>, { kind: 'change' }>,
  {
    publisher,
    policy,
    from,
  }: { readonly publisher: ChangePublisher; readonly policy: Ports['policy']; readonly from: PlaceOfChangeV1 },
): Promise<Changed<undefined> | 'overtaken'> {
  let change: string | undefined
  let after = plan.changes.length === 0 ? undefined : from
  for (const part of await inSlices(splitChanges(plan.changes, plan.lines))) {
    const notices = change === undefined ? (plan.notices ?? []) : []
    const { id, place, isSeen, isTaken } = await publisher.publish(by, part, { after, notices })
    if (!isSeen) return { kind: 'problem', problem: policyUnavailable(unseen) }
    if (!isTaken) return 'overtaken'
    const problems = policy.problemsOf(id)
    if (problems !== undefined) {
      await publisher.restore(by)
      return { kind: 'problem', problem: { ...conflict(misfit), problems } }
    }
    change = id
    after = place
  }
  return { kind: 'done', change, answer: undefined }
}

/** Kafka's faults as an answer; anything else is a bug, and told as one. */
function problemOf(error: unknown, log: Logger): Problem {
  if (!(error instanceof WeirError)) throw error
  log.error({ err: error }, 'the policy was not changed')
  if (error.code === 'KAFKA_DENIED') return policyUnavailable(`${error.message}. Nothing was changed by halves.`)
  if (error.retryable) return policyUnavailable(away)
  return { type: problemType('internal'), title: 'Internal error', status: 500, detail: error.message }
}
