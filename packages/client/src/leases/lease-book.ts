import type { CheckResult, LimitState } from '../check-result.ts'
import type { HeaderTemplate } from './header-template.ts'

/*
 * The algorithm by which an application decides with units that it took ahead. It has no clock, timer or connection:
 * its caller says what time it is, in milliseconds of a clock that is never set, and sends what `takeRound` returns.
 * docs/leases.md says what it promises.
 */

/** What is asked, and the text that tells it from others. */
export interface LeaseQuestion {
  readonly name: string
  /** As the body of a lease has it. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Units as the server gave them. */
export interface GivenLease {
  readonly id: string
  /** To be settled under this name. */
  readonly subject: string
  readonly count: number
  readonly cost: number
  /** From the sending of the round on. */
  readonly endsMs: number
  /** How long a lease lasts that no window cuts short. */
  readonly lifeMs: number
  readonly limits: readonly LimitState[]
  readonly headers: readonly HeaderTemplate[]
}

/** No units: for how long to ask singly, and whether the policy gives none for such a question. */
export interface NoLease {
  readonly plainMs: number
  readonly isBarred?: boolean
}

/** What one question of a round was answered. */
export type LeaseReply = GivenLease | NoLease

/** A lease that decides. */
export interface HeldLease extends GivenLease {
  /** Decisions still to be made. */
  left: number
  /** When its round was sent. */
  readonly sentMs: number
  readonly usableUntilMs: number
  /** When the first decision was made with it; undefined before that. */
  firstMs: number | undefined
}

/** Units to be given back. */
export interface Settlement {
  readonly id: string
  readonly subject: string
  /** Units that were used. */
  readonly cost: number
  /** After that the server knows the lease no more; it knows for longer what may have been settled. */
  readonly untilMs: number
  readonly mayBeSettled: boolean
}

/** What goes to the server in one call. */
export interface Round {
  readonly settle: readonly Settlement[]
  readonly refused: readonly Unreported[]
  readonly lease: readonly { readonly question: LeaseQuestion; readonly want: number }[]
}

/** A refusal that holds for a while. */
export interface Refusing {
  readonly result: CheckResult
  readonly sinceMs: number
  readonly untilMs: number
}

/** Refusals from memory that are not reported yet. */
interface Unreported {
  readonly question: LeaseQuestion
  readonly deniedBy: string
  count: number
}

interface Asked {
  readonly question: LeaseQuestion
  held: HeldLease | undefined
  /** Takes over when the one that decides is used up. */
  next: HeldLease | undefined
  /** Decisions wanted; undefined for none. */
  want: number | undefined
  /** Its wish is on its way. */
  isWishing: boolean
  refusing: Refusing | undefined
  unreported: Unreported | undefined
  plainUntilMs: number
  /** The policy lets it be decided here: only then a refusal is held too. */
  mayLease: boolean
  /** The last request that was asked singly. */
  singleMs: number
}

/** A lease of fewer decisions costs as much as checks of their own. */
const leastCount = 8
/** The first lease of a question, of which no more is known than when it came last. */
const firstCount = 64
/** As the server gives them. */
const mostCount = 10_000
/** At most so many times the last lease: a burst must not take what others need. */
const growth = 4
/** The clocks of two machines drift apart by a thousandth at most; and a millisecond for the rounding of both. */
const drift = 0.999
const roundingMs = 1
/** Rounds come no closer, nor closer than an eighth of a lease's life; for a question without units sooner. */
const roundGapMs = 100
const urgentGapMs = 20
const roundsPerLife = 8
/** Two requests of one question within this time wish for a lease, while no life is known. */
const lifeMsDefault = 1_000
/** A refusal holds in memory for this long at most, and is told within it. */
const refusingMsMax = 1_000
/** The server keeps leases for a minute behind their end, and what may have been settled for a quarter of an hour. */
const [settledWithinMs, repeatedWithinMs] = [60_000, 900_000]
/** Rounds that are lost one after the other: the first pause, and the longest. */
const [pauseMsMin, pauseMsMax] = [1_000, 60_000]
/** Refusals of questions that were forgotten, and units to be given back: what is beyond is lost. */
const leftoversMax = 10_000
/** Of so many of the oldest questions one is forgotten. */
const forgottenOf = 16
/** Items of each list of a round; the rest goes with the next. */
const itemsMax = 100
/** Of the names of its questions: what the server reads has each twice at most. */
const roundCharactersMax = 50_000
/** Rounds on their way: more, and the server does not answer. */
const roundsMax = 8

/** What an application holds and wishes. Every method that is given a time is given the same clock's, ascending. */
export class LeaseBook {
  /** Since it was made. `lost`: leases whose unused units were not given back. */
  readonly counters = { leased: 0, decided: 0, refused: 0, returned: 0, lost: 0 }
  readonly #questionsMax: number
  readonly #asked = new Map<string, Asked>()
  readonly #settlements: Settlement[] = []
  /** Of these questions at least something is to be sent. */
  readonly #due = new Set<Asked>()
  /** Of questions that are forgotten. */
  readonly #unreported: Unreported[] = []
  #lifeMs = lifeMsDefault
  #lastRoundMs = Number.NEGATIVE_INFINITY
  /** After a lost round nothing is sent before. */
  #silentUntilMs = Number.NEGATIVE_INFINITY
  #pauseMs = pauseMsMin
  #rounds = 0
  #isUrgent = false
  #isClosed = false

  constructor(questionsMax: number) {
    this.#questionsMax = questionsMax
  }

  /** Decides from memory; undefined where the server is to be asked. */
  decide(name: string, nowMs: number): HeldLease | Refusing | undefined {
    const one = this.#asked.get(name)
    if (one === undefined) return undefined
    const held = this.#heldOf(one, nowMs)
    const { refusing } = one
    if (held === undefined) {
      if (refusing === undefined) return undefined
      if (nowMs >= refusing.untilMs) {
        one.refusing = undefined
        return undefined
      }
      one.unreported ??= { question: one.question, deniedBy: refusing.result.deniedBy, count: 0 }
      one.unreported.count += 1
      this.counters.refused += 1
      this.#due.add(one)
      return refusing
    }
    held.left -= 1
    held.firstMs ??= nowMs
    this.counters.decided += 1
    if (held.left <= held.count / 2) this.#wishNext(one, held, nowMs)
    return held
  }

  /** Notes that a question goes to the server by itself, and wishes for a lease if it comes often. */
  askedSingly(question: LeaseQuestion, nowMs: number): void {
    if (this.#isClosed) return
    const one = this.#asked.get(question.name) ?? this.#open(question)
    const sinceMs = nowMs - one.singleMs
    one.singleMs = nowMs
    const isUnwanted = sinceMs > this.#lifeMs / 2 || nowMs < one.plainUntilMs || one.isWishing
    if (isUnwanted || this.#isClosed) return
    one.want ??= Math.round(Math.max(leastCount, Math.min(firstCount, this.#lifeMs / 2 / Math.max(1, sinceMs))))
    this.#due.add(one)
    // Its requests go singly until then.
    this.#isUrgent = true
  }

  /** Notes what the server answered to such a question: a limit's refusal holds for a while. */
  answeredSingly(name: string, result: CheckResult, nowMs: number): void {
    const one = this.#asked.get(name)
    if (one === undefined || result.allowed || result.reason !== 'limit' || result.onExceed === 'delay') return
    if (one.refusing !== undefined || !one.mayLease || this.#isClosed) return
    const untilMs = nowMs + Math.min(result.retryAfterMs, refusingMsMax)
    one.refusing = { result, sinceMs: nowMs, untilMs }
  }

  #open(question: LeaseQuestion): Asked {
    if (this.#asked.size >= this.#questionsMax) this.#forgetOne()
    const plain = {
      want: undefined,
      isWishing: false,
      refusing: undefined,
      unreported: undefined,
      plainUntilMs: Number.NEGATIVE_INFINITY,
      mayLease: false,
    }
    const one: Asked = { question, held: undefined, next: undefined, ...plain, singleMs: Number.NEGATIVE_INFINITY }
    this.#asked.set(question.name, one)
    return one
  }

  /** The lease that decides now; those that are over are to be settled. */
  #heldOf(one: Asked, nowMs: number): HeldLease | undefined {
    for (let { held } = one; held !== undefined; held = one.held) {
      if (held.left > 0 && nowMs < held.usableUntilMs) return held
      this.#return(held)
      one.held = one.next
      one.next = undefined
    }
    return undefined
  }

  #wishNext(one: Asked, { count, left, firstMs, lifeMs, sentMs }: HeldLease, nowMs: number): void {
    if (one.next !== undefined || one.isWishing || one.want !== undefined || nowMs < one.plainUntilMs) return
    const tookMs = Math.max(1, nowMs - (firstMs ?? sentMs))
    const ofHalfALife = ((count - left) * (lifeMs / 2)) / tookMs
    one.want = Math.round(Math.min(mostCount, growth * count, Math.max(leastCount, ofHalfALife)))
    this.#due.add(one)
  }

  #return({ id, subject, cost, count, left, usableUntilMs }: HeldLease): void {
    if (left === 0) return
    this.#settleLater({
      id,
      subject,
      cost: (count - left) * cost,
      untilMs: usableUntilMs + settledWithinMs,
      mayBeSettled: false,
    })
  }

  #settleLater(settlement: Settlement): void {
    if (this.#settlements.length < leftoversMax) this.#settlements.push(settlement)
    else this.counters.lost += 1
  }

  /** One that holds nothing, if one of the oldest does not: a flood of others must not take what is used. */
  #forgetOne(): void {
    const oldest: Asked[] = []
    for (const one of this.#asked.values()) if (oldest.push(one) === forgottenOf) break
    const one = oldest.find(({ held, unreported }) => held === undefined && unreported === undefined) ?? oldest[0]
    if (one === undefined) return
    for (const held of [one.held, one.next]) if (held !== undefined) this.#return(held)
    if (one.unreported !== undefined && this.#unreported.length < leftoversMax) this.#unreported.push(one.unreported)
    this.#asked.delete(one.question.name)
    this.#due.delete(one)
  }

  /** Whether something is to be sent, soon. */
  get hasWork(): boolean {
    return this.#due.size > 0 || this.#settlements.length > 0 || this.#unreported.length > 0
  }

  /** When something has to be done next: a round, or a lease or refusal that ends. */
  dueMs(): number {
    if (this.hasWork && this.#rounds < roundsMax) {
      const gapMs = Math.min(this.#isUrgent ? urgentGapMs : roundGapMs, this.#lifeMs / roundsPerLife)
      return Math.max(this.#silentUntilMs, this.#lastRoundMs + gapMs)
    }
    let endMs = Number.POSITIVE_INFINITY
    for (const { held } of this.#asked.values()) endMs = Math.min(endMs, held?.usableUntilMs ?? endMs)
    return endMs
  }

  /** What is to be sent now; undefined for nothing. It has to be answered, or lost. */
  takeRound(nowMs: number): Round | undefined {
    if (nowMs < this.dueMs() || this.#rounds >= roundsMax) return undefined
    for (const one of this.#asked.values()) this.#heldOf(one, nowMs)
    const lease: Round['lease'][number][] = []
    const refused = this.#unreported.splice(0, itemsMax)
    let bytes = 0
    for (const one of this.#due) {
      bytes += one.question.name.length
      if (lease.length >= itemsMax || refused.length >= itemsMax || bytes > roundCharactersMax) break
      this.#due.delete(one)
      const { question, want, unreported } = one
      if (want !== undefined) lease.push({ question, want })
      one.isWishing ||= want !== undefined
      one.want = undefined
      if (unreported !== undefined) refused.push(unreported)
      one.unreported = undefined
    }
    const settle = this.#settlements.splice(0, itemsMax)
    this.#isUrgent = false
    if (lease.length + refused.length + settle.length === 0) return undefined
    this.#lastRoundMs = nowMs
    this.#rounds += 1
    return { settle, refused, lease }
  }

  /** The answer to a round that was sent at `sentMs`. It may be late: units are used for what is left of their life. */
  answered(round: Round, replies: readonly LeaseReply[], sentMs: number, nowMs: number): void {
    this.#rounds -= 1
    this.#pauseMs = pauseMsMin
    this.counters.returned += round.settle.length
    for (const [at, { question }] of round.lease.entries()) {
      const one = this.#asked.get(question.name)
      const reply = replies[at] ?? { plainMs: refusingMsMax }
      if (one !== undefined) {
        one.isWishing = false
        one.mayLease = !('plainMs' in reply) || reply.isBarred !== true
      }
      if ('plainMs' in reply) {
        if (one !== undefined) one.plainUntilMs = nowMs + reply.plainMs
        continue
      }
      this.counters.leased += 1
      this.#lifeMs = reply.lifeMs
      const usableUntilMs = sentMs + reply.endsMs * drift - roundingMs
      const lease = { ...reply, left: reply.count, sentMs, usableUntilMs, firstMs: undefined }
      if (one === undefined || this.#isClosed || nowMs >= usableUntilMs) this.#return(lease)
      else if (one.held === undefined) one.held = lease
      else if (one.next === undefined) one.next = lease
      else this.#return(lease)
      // Those that decide are forgotten last.
      if (one !== undefined && this.#asked.delete(question.name)) this.#asked.set(question.name, one)
    }
  }

  /**
   * A round that is not answered: units it gave are charged and not used, and what it settled is sent again, after a
   * pause that grows. With `wasUndone` the server did nothing, and `plainMs` is for how long it is to be asked singly.
   */
  lost(round: Round, nowMs: number, { plainMs = 0, wasUndone = false } = {}): void {
    this.#rounds -= 1
    this.#silentUntilMs = nowMs + this.#pauseMs
    const untilMs = nowMs + Math.max(plainMs, this.#pauseMs)
    this.#pauseMs = Math.min(2 * this.#pauseMs, pauseMsMax)
    for (const one of round.settle) this.#repeat(one, nowMs, wasUndone)
    // What may have been counted is not reported twice.
    if (wasUndone) this.#unreported.push(...round.refused.slice(0, leftoversMax - this.#unreported.length))
    for (const { question } of round.lease) {
      const one = this.#asked.get(question.name)
      if (one === undefined) continue
      one.isWishing = false
      one.plainUntilMs = untilMs
    }
  }

  /** Units that the server did not take back: they are sent again, unless it knows the lease no more. */
  unsettled(settlement: Settlement, nowMs: number, isUnknown: boolean): void {
    this.counters.returned -= 1
    this.#silentUntilMs = nowMs + pauseMsMin
    if (isUnknown) this.counters.lost += 1
    else this.#repeat(settlement, nowMs, false)
  }

  /** What may have reached Redis is answered there for longer than a lease that nobody has settled. */
  #repeat(settlement: Settlement, nowMs: number, wasUndone: boolean): void {
    const { untilMs, mayBeSettled } = settlement
    if (nowMs >= untilMs) this.counters.lost += 1
    else if (wasUndone || mayBeSettled) this.#settleLater(settlement)
    else this.#settleLater({ ...settlement, untilMs: nowMs + repeatedWithinMs, mayBeSettled: true })
  }

  /** All that is held is to be given back: from now on everything is asked singly. */
  close(): void {
    this.#isClosed = true
    for (const one of [...this.#asked.values()]) {
      for (const held of [one.held, one.next]) if (held !== undefined) this.#return(held)
      one.held = undefined
      one.next = undefined
      one.want = undefined
      one.refusing = undefined
    }
    this.#isUrgent = true
    this.#silentUntilMs = Number.NEGATIVE_INFINITY
  }
}
