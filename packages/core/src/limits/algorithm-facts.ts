import { type Algorithm, algorithms, type Limit } from './limit.ts'

/** What other code asks of an algorithm: none compares its name. */
interface AlgorithmFacts {
  /**
   * All units return at one moment, the end of the span. Only then can a limit have a calendar period, a lease
   * or a size of 0, and only then does the refusal of one cost hold for every other.
   */
  readonly resetsAtOnce: boolean
  /** Its windows begin at times of a clock. */
  readonly followsClock: boolean
  /** Most units at one moment are a setting of their own, `burst`. */
  readonly hasBurst: boolean
  /** The time of every single unit is kept. */
  readonly keepsEachUnit: boolean
  /** Its units are requests in flight: a request that ends gives its unit back, and nobody knows when that will be. */
  readonly countsInFlight: boolean
  /** Returns when the oldest charge was made that a limit with this window may count at an instant. */
  countsFromMs(limit: Pick<Limit, 'size' | 'capacity'>, windowMs: number, ms: number): number
}

const ofWindows = { hasBurst: false, keepsEachUnit: false, followsClock: true, countsInFlight: false }
const windowBefore: AlgorithmFacts['countsFromMs'] = (_, windowMs, ms) => ms - (ms % windowMs) - windowMs

/** The facts of each algorithm. */
export const algorithmFacts: Readonly<Record<Algorithm, AlgorithmFacts>> = {
  fixed_window: { ...ofWindows, resetsAtOnce: true, countsFromMs: (_, windowMs, ms) => ms - (ms % windowMs) },
  sliding_window: { ...ofWindows, resetsAtOnce: false, countsFromMs: windowBefore },
  sliding_log: {
    ...ofWindows,
    resetsAtOnce: false,
    followsClock: false,
    keepsEachUnit: true,
    countsFromMs: windowBefore,
  },
  token_bucket: {
    resetsAtOnce: false,
    followsClock: false,
    hasBurst: true,
    keepsEachUnit: false,
    countsInFlight: false,
    countsFromMs: ({ size, capacity }, windowMs, ms) => ms - Math.ceil((capacity * windowMs) / size),
  },
  concurrency: {
    ...ofWindows,
    resetsAtOnce: false,
    followsClock: false,
    countsInFlight: true,
    countsFromMs: windowBefore,
  },
}

/** A fact that an algorithm has or has not. */
export type AlgorithmFact = Exclude<keyof AlgorithmFacts, 'countsFromMs'>

/** Returns the names of the algorithms that have a fact. */
export const algorithmsWith = (fact: AlgorithmFact): readonly Algorithm[] =>
  algorithms.filter((name) => algorithmFacts[name][fact])

/** Whether a limit counts requests in flight. */
export const countsInFlight = ({ algorithm }: Pick<Limit, 'algorithm'>): boolean =>
  algorithmFacts[algorithm].countsInFlight
