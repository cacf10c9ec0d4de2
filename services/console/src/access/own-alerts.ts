import { getOwnAlerts, type OwnAlertsAnswer, putOwnAlerts } from '@weir/api/access.ts'
import type { BodyOf } from '@weir/api/operation.ts'
import { confirmTarget, hashOf } from '@weir/policy/contact-targets.ts'
import { canonicalJson, deleteEntity, putEntity } from '@weir/policy/entities.ts'
import { mayBeSubject, subjectNamed } from '@weir/policy/named-subject.ts'
import { type EndpointOf, hasOwnAlerts, type OwnAlerts, type Policy } from '@weir/policy/policy.ts'
import { ownAddressesMax } from '@weir/policy/reader/read-own-alerts.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'
import { type ChangePlan, type PolicyChanger, reject } from '@weir/policy-changes/change-policy.ts'
import { problem } from '@weir/runtime/problem.ts'
import type { FastifyInstance } from 'fastify'
import { subjectForbidden } from '../http/authorize.ts'
import { answerProblem, tooManyQuestions, unknownName } from '../http/problems.ts'
import { serve, servePolicy } from '../http/serve.ts'
import { createRate } from '../limits/subject-limits.ts'
import { answerChange } from '../policy/answer-change.ts'
import type { Sources } from '../sources.ts'

/** An address that is not confirmed ends by then, and so does its link. It gets one mail in this time. */
const pendingMs = 86_400_000
/** The link is sent when every process has the address: a change is in force everywhere within a second. */
const linkDelayMs = 5_000

const none: OwnAlerts = { email: [], pending: [], percents: [] }
/** What a customer has chosen, though it may be no longer allowed to: it can take it back. */
const recordedOf = (policy: Policy, subject: string) => policy.ownAlerts.get(subject) ?? none

/** Whether an unconfirmed address is still counted, and its link valid unless it was removed. */
export const isAlive = ({ atMs }: OwnAlerts['pending'][number], nowMs: number): boolean => nowMs < atMs + pendingMs
/** Nothing that a mail server may drop or a person not see: two such texts are one mailbox. */
const unseen = /\p{C}/u
/** Changes are batches of the policy, which every process reads. */
const choiceRate = { size: 10, capacity: 10, span: { kind: 'window', ms: 60_000 }, boundaries: undefined } as const
const tooManyChoices = tooManyQuestions('You can change your alert settings up to 10 times a minute.')

/** Makes the policy say what a customer has chosen. */
export function planOwnAlerts<T>(
  state: PolicyState,
  subject: string,
  { email, pending, percents }: OwnAlerts,
  answer: T,
): ChangePlan<T> {
  const isNothing = email.length + pending.length + percents.length === 0
  const origin = state.get('ownAlerts', subject)?.origin ?? 'admin'
  const waiting = pending.map(({ email: address, atMs, isRemoved }) => ({
    email: address,
    at: new Date(atMs).toISOString(),
    ...(isRemoved ? { removed: true } : {}),
  }))
  const body = { email, pending: waiting, percents: percents.map((percent) => `${percent}%`) }
  const given = Object.fromEntries(Object.entries(body).filter(([, values]) => values.length > 0))
  const entity = { kind: 'ownAlerts', name: subject, origin, position: undefined, body: given } as const
  const before = state.get('ownAlerts', subject)?.body
  if (canonicalJson(before ?? {}) === canonicalJson(given)) return { kind: 'nothing', answer }
  return {
    kind: 'change',
    changes: [isNothing ? deleteEntity('ownAlerts', subject) : putEntity(entity)],
    lines: [{ what: isNothing ? 'delete' : 'put', kind: 'ownAlerts', name: subject }],
    answer,
  }
}

function shown({ policy }: PolicyState, id: string, nowMs: number): OwnAlertsAnswer {
  const { email, pending, percents } = recordedOf(policy, id)
  const out = policy.unsubscribed.get(id) ?? []
  const subject = subjectNamed(policy, id)
  return {
    allowed: subject !== undefined && hasOwnAlerts(subject),
    addresses: [
      ...email.map((one) => ({ email: one, state: out.includes(hashOf(one)) ? 'unsubscribed' : 'confirmed' }) as const),
      ...pending
        .filter((one) => isAlive(one, nowMs) && !one.isRemoved)
        .map((one) => ({ email: one.email, state: 'pending' }) as const),
    ],
    percents: [...percents],
  }
}

const refused = (detail: string) => reject(problem('own-alerts-refused', 'Conflict', 409, detail))

/**
 * Plans what a customer has chosen. An address is confirmed by its owner before its first alert; until then it gets one
 * mail a day at most, and is counted, so that nobody is mailed by adding and removing it.
 */
function planChoice(
  state: PolicyState,
  subject: string,
  { addresses: asked, percents }: BodyOf<typeof putOwnAlerts>,
  { alerts, nowMs, hasKey }: Pick<Sources, 'alerts'> & { readonly nowMs: number; readonly hasKey: boolean },
): ChangePlan<undefined> {
  const { policy } = state
  const addresses = [...new Set(asked.map((one) => one.toLowerCase()))]
  const found = subjectNamed(policy, subject)
  const mayChoose = found !== undefined && hasOwnAlerts(found)
  // What was chosen before can always be taken back.
  if (!mayChoose && addresses.length + percents.length > 0) {
    return refused(`Neither ${subject} nor its plan allows customers to choose alerts: set ownAlerts: true.`)
  }
  const before = recordedOf(policy, subject)
  const email = before.email.filter((one) => addresses.includes(one))
  const waiting = before.pending
    .filter((one) => isAlive(one, nowMs))
    .map((one) => ({ ...one, isRemoved: !addresses.includes(one.email) }))
  const known = new Set([...email, ...waiting.map((one) => one.email)])
  const fresh = addresses.filter((one) => !known.has(one))
  if (known.size + fresh.length > ownAddressesMax) {
    return refused(`A customer can have at most ${ownAddressesMax} addresses; unconfirmed ones count for one day.`)
  }
  const taken = [...known, ...(policy.contacts.get(subject)?.email ?? []), ...fresh]
  const isWrong = (one: string) => unseen.test(one) || taken.some((two) => two !== one && hashOf(two) === hashOf(one))
  const wrong = fresh.find(isWrong)
  if (wrong !== undefined) return refused(`${JSON.stringify(wrong)} is not accepted as an address.`)
  const out = policy.unsubscribed.get(subject) ?? []
  const gone = fresh.find((one) => out.includes(hashOf(one)))
  if (gone !== undefined) return refused(`${gone} has unsubscribed. Ask your provider to send it alerts again.`)
  const endpoint = [...policy.endpoints.values()].find((one): one is EndpointOf<'subject'> => one.type === 'subject')
  if (fresh.length > 0 && (endpoint === undefined || !hasKey)) {
    return refused(
      'Customers cannot get mail: there is no endpoint of type subject, or WEIR_UNSUBSCRIBE_KEY is not set.',
    )
  }
  const added = fresh.map((one) => ({ email: one, atMs: nowMs, isRemoved: false }))
  const sorted = [...new Set(percents)].sort((a, b) => a - b)
  const plan = planOwnAlerts(state, subject, { email, pending: [...waiting, ...added], percents: sorted }, undefined)
  if (plan.kind !== 'change' || endpoint === undefined) return plan
  return {
    ...plan,
    async before() {
      for (const one of added) await alerts.sendTest(confirmTarget(endpoint, one), subject, linkDelayMs)
      return undefined
    },
  }
}

/** `/v1/subjects/{id}/own-alerts`: addresses and percentages that a customer chooses for its own alerts. */
export function registerOwnAlerts(app: FastifyInstance, sources: Sources, changer: PolicyChanger): void {
  const { clock } = sources
  const waitMs = createRate(() => clock.nowMs(), choiceRate)
  servePolicy(app, sources, getOwnAlerts, async (state, request, reply) => {
    const { id } = request.params
    if (!request.reach.covers([id])) return answerProblem(reply, subjectForbidden(request))
    if (!mayBeSubject(state.policy, id)) return answerProblem(reply, unknownName('subject', id))
    return shown(state, id, clock.nowMs())
  })

  serve(app, putOwnAlerts, async (request, reply) => {
    const { id } = request.params
    if (!request.reach.covers([id])) return answerProblem(reply, subjectForbidden(request))
    if (waitMs(id) > 0) return answerProblem(reply, tooManyChoices)
    const nowMs = clock.nowMs()
    // Planned again after another console was faster, it sends no second link.
    const sent = new Set<string>()
    const sendTest: typeof sources.alerts.sendTest = async (target, ...more) => {
      if (sent.has(target)) return target
      sent.add(target)
      return await sources.alerts.sendTest(target, ...more)
    }
    const means = { alerts: { ...sources.alerts, sendTest }, nowMs, hasKey: sources.access.unsubscribeKey() !== '' }
    const changed = await changer.change(request.by, (state) => planChoice(state, id, request.body, means))
    return answerChange(reply, changed, () => {
      const { state } = sources.policy
      return state === undefined ? { allowed: true, addresses: [], percents: [] } : shown(state, id, nowMs)
    })
  })
}
