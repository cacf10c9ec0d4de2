/** Decisions of one second, as an event `sums` of the stream has them. */
export interface SecondSums {
  readonly ts: string
  readonly rows: readonly Sum[]
  /** By subject; of so many as a second names. */
  readonly subjects?: readonly (Sum & { readonly subject: string })[]
}

interface Sum {
  readonly outcome: string
  readonly denied_by: string
  readonly count: number
}

/** What a listed decision says about its subject. */
export interface ListedDecision {
  readonly subject: string
  readonly key_id: string
  /** A customer sees none. */
  readonly limits?: readonly { readonly name: string; readonly used: number | null; readonly size: number }[]
}

/** One subject's rates. */
export interface SubjectRate {
  readonly subject: string
  /** Decisions a second, refused ones included. */
  readonly requests: number
  readonly refused: number
  /** The limit that refused most; empty where none did. */
  readonly by: string
  /** The limit that was nearest to its end at the last decision that was listed. */
  readonly nearest: { readonly name: string; readonly share: number } | undefined
  readonly keyId: string
}

interface Second {
  readonly ms: number
  readonly sums: SecondSums
}
interface Listed extends Pick<SubjectRate, 'nearest' | 'keyId'> {
  /** Seconds that have ended since. */
  age: number
}

const countOf = (sums: readonly Sum[], isMeant: (sum: Sum) => boolean = () => true) =>
  sums.reduce((all, sum) => all + (isMeant(sum) ? sum.count : 0), 0)
const isRefused = ({ outcome }: Sum) => outcome === 'deny'

function nearestOf({ limits = [] }: ListedDecision): SubjectRate['nearest'] {
  const shares = limits.flatMap(({ name, used, size }) =>
    used === null || size <= 0 ? [] : [{ name, share: used / size }],
  )
  return shares.toSorted((a, b) => b.share - a.share)[0]
}

/**
 * Rates of the last seconds. All of them are sums that the stream made of every decision, so that they are exact
 * however few decisions it lists; only the nearest limit and the key are those of decisions that it has listed.
 */
export class Rates {
  readonly #windowSeconds: number
  #seconds: Second[] = []
  readonly #listed = new Map<string, Listed>()
  /** End of the second before; undefined where the next one is not whole. */
  #endedMs: number | undefined
  #isWhole = false

  constructor(windowSeconds: number) {
    this.#windowSeconds = windowSeconds
  }

  /** The stream begins, or begins again: what it says of the first moments is not whole, and does not count. */
  begin(): void {
    this.#isWhole = false
    this.#endedMs = undefined
  }

  /** Nothing that is decided from now on is left out: the next second that begins counts. */
  following(): void {
    this.#isWhole = true
  }

  /** Seconds that the rates are of. */
  get seconds(): number {
    return this.#seconds.reduce((all, { ms }) => all + ms, 0) / 1_000
  }

  second(sums: SecondSums): void {
    if (!this.#isWhole) return
    const ms = Date.parse(sums.ts)
    if (this.#endedMs !== undefined) this.#seconds.push({ ms: ms - this.#endedMs, sums })
    this.#endedMs = ms
    this.#seconds = this.#seconds.slice(-this.#windowSeconds)
    for (const [subject, listed] of this.#listed) {
      listed.age += 1
      if (listed.age > this.#windowSeconds) this.#listed.delete(subject)
    }
  }

  listed(decision: ListedDecision): void {
    this.#listed.set(decision.subject, { nearest: nearestOf(decision), keyId: decision.key_id, age: 0 })
  }

  #rate = (count: number) => count / Math.max(this.seconds, Number.MIN_VALUE)

  /** Decisions a second over all subjects. */
  all(): { readonly allowed: number; readonly refused: number } {
    const rows = this.#seconds.flatMap(({ sums }) => sums.rows)
    return {
      allowed: this.#rate(countOf(rows, (sum) => !isRefused(sum))),
      refused: this.#rate(countOf(rows, isRefused)),
    }
  }

  /** Subjects, and what a second had no place for by subject. */
  subjects(): { readonly rates: readonly SubjectRate[]; readonly others: Pick<SubjectRate, 'requests' | 'refused'> } {
    const named = this.#seconds.flatMap(({ sums }) => sums.subjects ?? [])
    const rates = [...Map.groupBy(named, ({ subject }) => subject)].map(([subject, sums]) => {
      const refused = sums.filter(isRefused)
      const limits = [...Map.groupBy(refused, ({ denied_by }) => denied_by)]
      const [by = ''] = limits.toSorted(([, a], [, b]) => countOf(b) - countOf(a))[0] ?? []
      const { nearest, keyId = '' } = this.#listed.get(subject) ?? {}
      return { subject, by, nearest, keyId, requests: this.#rate(countOf(sums)), refused: this.#rate(countOf(refused)) }
    })
    const rows = this.#seconds.flatMap(({ sums }) => sums.rows)
    const rest = (isMeant?: (sum: Sum) => boolean) => this.#rate(countOf(rows, isMeant) - countOf(named, isMeant))
    return { rates, others: { requests: rest(), refused: rest(isRefused) } }
  }
}
