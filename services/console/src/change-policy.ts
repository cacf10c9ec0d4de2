import {
  type ChangeLineV1,
  encodeChange,
  encodeChangeDeletion,
  encodeEntityChange,
  type PolicyMessage,
} from '@weir/contracts/policy.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { EntityChange } from '@weir/core/policy/entities.ts'
import type { PolicyState } from '@weir/core/policy/policy-state.ts'
import { defaultKeyId } from '@weir/core/policy/read-keys.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { type Problem, problemType } from '@weir/runtime/problem.ts'
import { changeRefused, conflict, policyUnavailable } from './http/problems.ts'
import type { Ports } from './ports.ts'
import { type PartOfChange, splitChanges } from './split-changes.ts'

/** Changes that wait for their turn: each takes some milliseconds, and whoever waits longer than a second asks again. */
const waitingMax = 100
/** Kafka gives a record back within milliseconds; somebody waits for the answer. */
const seenDeadlineMs = 10_000

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
  /** `plan` runs when all changes before are through: what it sees is what it changes. It must not wait for anything. */
  change<T>(by: string, plan: (state: PolicyState) => Plan<T>): Promise<Changed<T>>
}

const away = 'Kafka did not take the change. Nothing was changed by halves; try again when it is back.'
const unread = 'The policy was not read yet: Kafka does not answer, and there is no copy of an earlier time.'
const unseen =
  'The change is stored, but was not read back in time. It takes effect by itself; look before you repeat it.'
const overtaken =
  'Another console has changed the policy at the same moment, and this does not fit it any more. Look, and try again.'
const noPolicy =
  'There is no policy yet. Apply a file first (weir apply, or PUT /v1/policy): the first change would replace all that processes have from their own files.'

/**
 * The one way in which the policy is changed, one change at a time: 1. checked as a whole, 2. published as one batch that
 * ends with its audit record, 3. waited for until this process has read it back, 4. answered. A stop between 2 and 4
 * leaves a change that is in force and in the audit, and a caller that does not know. One that another console has made
 * wrong between 1 and 2 is left out by every process, and taken back in the topic, where it would come to light later.
 */
export function createPolicyChanger({ policy, audit, clock }: Ports, log: Logger): PolicyChanger {
  let turn: Promise<unknown> = Promise.resolve()
  let waiting = 0

  const publish = async (by: string, { changes, lines }: PartOfChange, notices: readonly PolicyMessage[] = []) => {
    const nowMs = clock.nowMs()
    const id = uuidv7(nowMs)
    const surplus = audit.takeSurplus().map(encodeChangeDeletion)
    const record = encodeChange(id, { atMs: nowMs, by, summary: lines })
    const offset = await policy.publish([...changes.map(encodeEntityChange), ...notices, ...surplus, record])
    log.info({ change: id, by, entities: changes.length }, 'policy changed')
    return { id, isSeen: await policy.reached(offset, seenDeadlineMs) }
  }

  const publishAll = async (
    by: string,
    plan: Extract<Plan<unknown>, { kind: 'change' }>,
  ): Promise<Changed<undefined>> => {
    let change: string | undefined
    for (const part of splitChanges(plan.changes, plan.lines)) {
      const { id, isSeen } = await publish(by, part, change === undefined ? plan.notices : [])
      if (!isSeen) return { kind: 'problem', problem: policyUnavailable(unseen) }
      const problems = policy.problemsOf(id)
      if (problems !== undefined) {
        const inForce = part.changes.map(({ kind, name }) => ({ kind, name, entity: policy.state?.get(kind, name) }))
        await publish(by, { changes: inForce, lines: inForce.map(takenBack) })
        return { kind: 'problem', problem: { ...conflict(overtaken), problems } }
      }
      change = id
    }
    return { kind: 'done', change, answer: undefined }
  }

  const run = async <T>(by: string, makePlan: (state: PolicyState) => Plan<T>): Promise<Changed<T>> => {
    const { state } = policy
    if (state === undefined) return { kind: 'problem', problem: policyUnavailable(unread) }
    const plan = makePlan(state)
    if (plan.kind === 'problem') return plan
    if (plan.kind === 'nothing') return { kind: 'done', change: undefined, answer: plan.answer }
    if (state.size === 0 && audit.fileRevision === undefined && plan.lines[0]?.kind !== 'policy') {
      return { kind: 'problem', problem: conflict(noPolicy) }
    }
    const checked = state.check(plan.changes)
    if (checked.kind === 'problems') return { kind: 'problem', problem: changeRefused(checked.problems) }
    const problem = await plan.before?.()
    if (problem !== undefined) return { kind: 'problem', problem }
    const published = await publishAll(by, plan)
    return published.kind === 'problem' ? published : { ...published, answer: plan.answer }
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

/** What the audit says of a part that is again as it was. */
function takenBack({ kind, name, entity }: EntityChange): ChangeLineV1 {
  return { what: entity === undefined ? 'delete' : 'put', kind, name: kind === 'key' ? defaultKeyId(name) : name }
}

/** Kafka's faults as an answer; anything else is a bug, and told as one. */
function problemOf(error: unknown, log: Logger): Problem {
  if (!(error instanceof WeirError)) throw error
  log.error({ err: error }, 'the policy was not changed')
  if (error.retryable) return policyUnavailable(away)
  return { type: problemType('internal'), title: 'Internal error', status: 500, detail: error.message }
}
