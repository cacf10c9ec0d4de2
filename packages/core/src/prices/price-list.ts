import type { Amount } from './amount.ts'

/** What a line counts, of allowed decisions alone: the units that they used, or how many they were. */
export const priceMeasures = ['units', 'decisions'] as const
/** One of them. */
export type PriceMeasure = (typeof priceMeasures)[number]

/** `graduated`: each unit at the price of its tier. `volume`: all units at the price of the tier that is reached. */
export const tierModes = ['graduated', 'volume'] as const
/** One of them. */
export type TierMode = (typeof tierModes)[number]

/** Whether a package that is begun is paid (`up`), or only one that is full (`down`). */
export const packageRounds = ['up', 'down'] as const

/** Units that are sold together: a tier's `unitAmount` is the price of one package. */
export interface Packaging {
  /** Units of a package. Of a graduated line every `upTo` is a multiple, so that one package at most is not full. */
  readonly per: bigint
  readonly round: (typeof packageRounds)[number]
}

/** A part of a line's quantity and its price. It begins where the tier before ends. */
export interface PriceTier {
  /** The last unit of the tier, counted after the included ones; undefined for the last tier. */
  readonly upTo: bigint | undefined
  readonly unitAmount: Amount
  /** Added once if a unit falls into the tier. */
  readonly flatAmount: Amount
}

/** What some routes cost. */
export interface PriceLine {
  readonly name: string
  /** Templates of routes; undefined for all that no other line names. */
  readonly routes: readonly string[] | undefined
  readonly measure: PriceMeasure
  /** Units of every period that cost nothing. */
  readonly included: bigint
  readonly mode: TierMode
  /** Absent where each unit is paid by itself. */
  readonly packaging?: Packaging | undefined
  /** Never empty; in ascending order, and only the last has no `upTo`. */
  readonly tiers: readonly PriceTier[]
}

/** What a subject pays for a period. */
export interface PriceList {
  readonly name: string
  /** Of ISO 4217. */
  readonly currency: string
  /** The decimal places of the currency's smallest unit. */
  readonly digits: number
  /** For the period, whatever was used; never finer than the currency's smallest unit. */
  readonly flat: Amount
  /** The least total of a period; never finer than the currency's smallest unit. */
  readonly minimum: Amount
  readonly lines: readonly PriceLine[]
}
