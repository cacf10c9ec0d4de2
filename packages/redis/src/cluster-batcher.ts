import type { Charged, Decision } from '@weir/core/limits/decision.ts'
import { isOfOneSubject, type Limit } from '@weir/core/limits/limit.ts'
import {
  type Charge,
  type LimitRequest,
  type Reservation,
  type ScopeValues,
  type SlotCharge,
  unlimitedDecision,
} from '@weir/core/limits/limit-store.ts'
import { unavailableDecision } from '@weir/core/limits/unavailable.ts'
import { withTimeout } from '@weir/runtime/with-timeout.ts'
import { type ClusterServers, SlotTarget } from './cluster-servers.ts'
import { type BatcherOptions, DecisionBatcher } from './decision-batcher.ts'
import { joinParts, type PartDecision, partCharge, type SlotPart } from './join-parts.ts'
import { keySlot } from './key-slot.ts'
import { limitKey, settlementKey, settlementKeyBeside, treeSubject } from './keys.ts'

/** Batchers with requests in flight; an idle one is dropped. As many as a second brings busy subjects. */
const batchersMax = 4_096

const countsBySubject = ({ by }: Limit) => isOfOneSubject(by)

/**
 * Decides in a Cluster, where one call sees one slot. Each slot in use has a batcher. All limits of a subject are in
 * one slot, so most requests take one call, as without a Cluster.
 *
 * If the limits of a request are in several slots, the other slots are peeked at first. If none of them denies, the
 * subject's slot is charged, and then the others. If one of them denies now, because another request came between, the
 * charges are refunded. With an idempotency key the subject's slot goes last, because its marker says that everything
 * was charged. All of that happens within one deadline; if the server of a slot is down, the request is decided without
 * Redis.
 */
export class ClusterBatcher {
  readonly #servers: ClusterServers
  readonly #options: BatcherOptions
  readonly #batchers = new Map<number, DecisionBatcher>()
  /** What a decision over several slots was charged by each of them, for its refund: their clocks differ. */
  readonly #chargesOf = new WeakMap<Charge, readonly PartDecision[]>()
  #isClosed = false

  constructor(servers: ClusterServers, options: BatcherOptions) {
    this.#servers = servers
    this.#options = options
  }

  decide(request: LimitRequest, arrivedMs: number): Promise<Decision> {
    const parts = partsOf(request)
    const [first, second] = parts
    if (first !== undefined && second === undefined) return this.#decidePart(first, arrivedMs)
    return this.#decideAcross(request, parts, arrivedMs)
  }

  async refund(request: LimitRequest, charge: Charge, arrivedMs: number): Promise<number> {
    const charged = this.#chargesOf.get(charge)
    const refunds = charged ?? partsOf(request).map((part) => ({ part, decision: partCharge(part, charge) }))
    const refunded = await Promise.all(refunds.map(({ part, decision }) => this.#refundPart(part, decision, arrivedMs)))
    return Math.max(0, ...refunded)
  }

  async changeSlots({ request, atUs }: SlotCharge, kind: 'refund' | 'renew', arrivedMs: number): Promise<number> {
    const changes = partsOf(request).map(({ slot, request: part }) =>
      this.#batcherOf(slot)?.changeSlots({ request: part, atUs }, kind, arrivedMs),
    )
    return Math.max(0, ...(await Promise.all(changes)).map((changedAtUs = 0) => changedAtUs))
  }

  close(): void {
    this.#isClosed = true
    for (const batcher of this.#batchers.values()) batcher.close()
  }

  #batcherOf(slot: number): DecisionBatcher | undefined {
    const known = this.#batchers.get(slot)
    if (known !== undefined) return known
    if (this.#isClosed || this.#batchers.size >= batchersMax) return undefined
    const batcher: DecisionBatcher = new DecisionBatcher(new SlotTarget(this.#servers, slot), this.#options, () => {
      if (this.#batchers.get(slot) === batcher) this.#batchers.delete(slot)
    })
    this.#batchers.set(slot, batcher)
    return batcher
  }

  #decidePart({ slot, request }: SlotPart, arrivedMs: number): Promise<Decision> {
    const batcher = this.#batcherOf(slot)
    if (batcher !== undefined) return batcher.decide(request, arrivedMs)
    return Promise.resolve(unavailableDecision(request, 'no'))
  }

  #refundPart({ slot, request }: SlotPart, charge: Charge, arrivedMs: number): Promise<number> {
    return this.#batcherOf(slot)?.refund(request, charge, arrivedMs) ?? Promise.resolve(0)
  }

  async #decideAcross(request: LimitRequest, parts: readonly SlotPart[], arrivedMs: number): Promise<Decision> {
    const home = parts.find(({ isHome }) => isHome)
    const others = parts.filter(({ isHome }) => !isHome)
    const looks = await this.#lookAt(request.peek ? parts : others, arrivedMs)
    if (looks.some(isUnavailable)) return unavailableDecision(request, 'no')
    if (request.peek || home === undefined) return joinParts(request, looks)
    const refusing = looks.filter(({ decision }) => !decision.allowed)
    if (refusing.length > 0) return await this.#refuse(request, looks, home, arrivedMs)

    const stages = request.idempotency === undefined ? [[home], others] : [others, [home]]
    const done: PartDecision[] = []
    for (const stage of stages) {
      done.push(...(await Promise.all(stage.map((part) => this.#decideOne(part, arrivedMs)))))
      const isRepeat = done.some(({ decision }) => decision.repeats !== '')
      if (isRepeat || done.some(({ decision }) => !decision.allowed || isUnavailable({ decision }))) break
    }
    if (done.length === parts.length && done.every(({ decision }) => decision.charged === 'yes')) {
      const decision = joinParts(request, done)
      this.#chargesOf.set(decision, done)
      return decision
    }
    return await this.#undo(request, done, looks, home, arrivedMs)
  }

  /** Not every part was charged: the charges are refunded, unless the request is allowed all the same. */
  async #undo(
    request: LimitRequest,
    done: readonly PartDecision[],
    looks: readonly PartDecision[],
    home: SlotPart,
    arrivedMs: number,
  ): Promise<Decision> {
    const isDown = done.some(isUnavailable)
    if (isDown && unavailableDecision(request, 'unknown').allowed) return unavailableDecision(request, chargedBy(done))
    const lateRefund = firstLateRefund(done)
    const charged = done.filter(({ decision }) => decision.charged === 'yes')
    const startedMs = performance.now()
    const refunds = Promise.all(charged.map(({ part, decision }) => this.#refundPart(part, decision, startedMs)))
    const leftMs = arrivedMs + this.#options.deadlineMs - startedMs
    const refunded = await withTimeout(refunds, leftMs, undefined).catch(() => undefined)
    const isBack = (refundedAtUs: number, at: number) =>
      refundedAtUs > 0 || charged[at]?.part.request.limits.length === 0
    const areAllBack = refunded?.every(isBack) === true
    const outcome: Charged =
      areAllBack && done.every(({ decision }) => decision.charged !== 'unknown') ? 'no' : 'unknown'
    if (isDown) return { ...unavailableDecision(request, outcome), ...lateRefund }
    // A part that was not reached is as the peek found it. The subject's part was reached, unless another denied
    // before.
    const homeLook = !done.some(({ part }) => part === home) ? await this.#lookAt([home], arrivedMs) : []
    if (homeLook.some(isUnavailable)) return unavailableDecision(request, outcome)
    const reached = [...done, ...homeLook]
    const rest = looks.filter(({ part }) => !reached.some((one) => one.part === part))
    return { ...joinParts(request, [...reached, ...rest]), charged: outcome }
  }

  /** Denies by what the peeks found. Limits with a block are asked for real, because a peek sets no block. */
  async #refuse(
    request: LimitRequest,
    looks: readonly PartDecision[],
    home: SlotPart,
    arrivedMs: number,
  ): Promise<Decision> {
    const blocking = looks.filter(({ part, decision }) => !decision.allowed && part.request.limits.some(hasBlock))
    const asked = await Promise.all(blocking.map(({ part }) => this.#decideOne(part, arrivedMs)))
    const admitted = asked.filter(({ decision }) => decision.charged === 'yes')
    for (const { part, decision } of admitted) void this.#refundPart(part, decision, performance.now())
    const refused = asked.filter(({ decision }) => !decision.allowed && decision.reason !== 'unavailable')
    const [homeLook] = await this.#lookAt([home], arrivedMs)
    if (homeLook === undefined || isUnavailable(homeLook)) return unavailableDecision(request, 'no')
    const rest = looks.filter(({ part }) => !refused.some((one) => one.part === part))
    return { ...joinParts(request, [homeLook, ...refused, ...rest]), charged: 'no' }
  }

  async #decideOne(part: SlotPart, arrivedMs: number): Promise<PartDecision> {
    return { part, decision: await this.#decidePart(part, arrivedMs) }
  }

  #lookAt(parts: readonly SlotPart[], arrivedMs: number): Promise<readonly PartDecision[]> {
    return Promise.all(
      parts.map(async (part) => {
        if (part.request.limits.length === 0) return { part, decision: unlimitedDecision }
        const look = { ...part, request: { ...part.request, peek: true } }
        return { part, decision: await this.#decidePart(look, arrivedMs) }
      }),
    )
  }
}

const hasBlock = ({ mode, blockMs }: Limit) => mode === 'enforce' && blockMs > 0

const isUnavailable = ({ decision }: Pick<PartDecision, 'decision'>) => decision.reason === 'unavailable'

/** Settles with the first refund of a part: the record then says that the charge was refunded. */
function firstLateRefund(done: readonly PartDecision[]): Pick<Decision, 'lateRefund'> {
  const refunds = done.flatMap(({ decision }) => decision.lateRefund ?? [])
  return refunds.length === 0 ? {} : { lateRefund: Promise.race(refunds) }
}

const chargedBy = (done: readonly PartDecision[]): Charged =>
  done.every(({ decision }) => decision.charged === 'no') ? 'no' : 'unknown'

/** If no limit counts by subject, the marker of an idempotency key goes to the slot of the other limits. */
function inSlotOf(limits: readonly Limit[], request: LimitRequest): Pick<LimitRequest, 'scope' | 'idempotency'> {
  const { scope, idempotency } = request
  if (idempotency === undefined || limits.length === 0 || limits.some(countsBySubject)) return { scope, idempotency }
  const subject = limits.some(({ by }) => by.some(({ kind }) => kind === 'ip')) ? `ip:${scope.ip}` : '_global'
  // A space ends the subject, which may have some.
  const key = `${scope.subject.replaceAll(' ', '\n')} ${idempotency.key}`
  return {
    scope: { ...scope, subject, above: undefined },
    idempotency: { ...idempotency, key, subject: scope.subject },
  }
}

interface SlotGroup extends Pick<SlotPart, 'slot' | 'positions'> {
  readonly limits: readonly Limit[]
}

/**
 * Splits the request by slot, in the order of its limits. The subject's part, or the first, has the idempotency key.
 */
function partsOf(request: LimitRequest): readonly SlotPart[] {
  const { reservation, scope } = request
  const bySlot = Map.groupBy(request.limits.entries(), ([, limit]) => keySlot(limitKey(limit, scope)))
  const groups = [...bySlot].map(([slot, entries]): SlotGroup => {
    return { slot, positions: entries.map(([at]) => at), limits: entries.map(([, limit]) => limit) }
  })
  const counted = groups.find(({ limits }) => limits.some(countsBySubject))
  // A settlement names the subject alone, so a part is kept in the subject's slot even if no limit is there.
  if (reservation !== undefined && counted === undefined) {
    groups.unshift({ slot: keySlot(settlementKey(treeSubject(scope), reservation.id)), positions: [], limits: [] })
  }
  const home = counted ?? groups[0]
  return groups.map((group) => {
    const { slot, positions, limits } = group
    const isHome = group === home
    const own = isHome ? inSlotOf(limits, request) : { idempotency: undefined }
    const settled = reservation && { reservation: reservationIn(group, groups, isHome, scope, reservation) }
    return { slot, positions, isHome, request: { ...request, limits, ...own, ...settled } }
  })
}

/** Every part keeps its charge in its own slot; the home part also keeps the keys of the others. */
function reservationIn(
  group: SlotGroup,
  groups: readonly SlotGroup[],
  isHome: boolean,
  scope: ScopeValues,
  reservation: Reservation,
): Reservation {
  const keysIn = ({ limits: [limit] }: SlotGroup) =>
    limit === undefined ? [] : [settlementKeyBeside(limitKey(limit, scope), reservation.id)]
  if (!isHome) return { ...reservation, key: keysIn(group)[0] ?? '' }
  const siblingKeys = groups.filter((other) => other !== group).flatMap(keysIn)
  return { ...reservation, key: settlementKey(treeSubject(scope), reservation.id), siblingKeys }
}
