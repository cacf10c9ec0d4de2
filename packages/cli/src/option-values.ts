import { parseTimeMs, timeRule } from '@weir/policy/policy-values.ts'
import { InvalidArgumentError } from 'commander'

/** Returns what reads a whole number between two others. It throws for anything else, as all of these do. */
export const wholeNumber = (min: number, max: number) => (value: string) => {
  const number = Number(value)
  if (/^\d+$/.test(value) && number >= min && number <= max) return number
  throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
}

/** Collects filters by label, `NAME=VALUE`. */
export const labelFilter = (value: string, before: readonly string[] = []): readonly string[] => {
  if (value.indexOf('=') > 0) return [...before, value]
  throw new InvalidArgumentError('It must be like model=small.')
}

/** Takes a time with an offset, as policies write it. */
export const policyTime = (value: string): string => {
  if (parseTimeMs(value) !== undefined) return value
  throw new InvalidArgumentError(`It must be ${timeRule}.`)
}

/** Reads an offset of Kafka, or `clickhouse`. */
export const offsetOrClickhouse = (value: string): string => {
  if (value === 'clickhouse' || /^\d{1,18}$/.test(value)) return value
  throw new InvalidArgumentError('It must be an offset, or clickhouse.')
}
