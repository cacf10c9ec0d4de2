import type { Spot } from './foreign-file.ts'

/** The units of a limit there, with the windows that count the same. */
export const windowOfUnit = {
  second: '1s',
  minute: '1m',
  hour: '1h',
  day: '1d',
  week: '7d',
  month: '30d',
  year: '365d',
} as const
/** A unit of time in Envoy's configuration. */
export type EnvoyUnit = keyof typeof windowOfUnit

/** A `rate_limit`. */
export interface EnvoyLimit extends Spot {
  /** Undefined for one that is unlimited. */
  readonly per: { readonly unit: EnvoyUnit; readonly requests: number } | undefined
  /** Empty for none. */
  readonly name: string
  readonly replaces: readonly string[]
}

/** One node of the tree that a configuration is. */
export interface EnvoyDescriptor extends Spot {
  readonly key: string
  /** Empty for any; with `*` at its end for any that begins so. */
  readonly value: string
  readonly limit: EnvoyLimit | undefined
  /** Whether the limit refuses nothing. */
  readonly isShadow: boolean
  /** Whether all values that begin so are counted together. */
  readonly isShared: boolean
  readonly descriptors: readonly EnvoyDescriptor[]
}

/** A configuration file of `envoyproxy/ratelimit`, as its server understands it. */
export interface EnvoyConfig extends Spot {
  readonly domain: string
  readonly descriptors: readonly EnvoyDescriptor[]
}

/** A node as people write it of a path: `key=value`, or the key alone. */
export const stepName = ({ key, value }: Pick<EnvoyDescriptor, 'key' | 'value'>): string =>
  value === '' ? key : `${key}=${value}`
