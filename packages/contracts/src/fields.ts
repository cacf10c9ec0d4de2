import { parseTs } from './timestamp.ts'

/** Says whether a field's value is what it should be. */
type Check = (value: unknown) => boolean
/** A check for each field of a record. */
export type Checks<Name extends string = string> = Readonly<Record<Name, Check>>

/** Reads JSON; undefined for any other text. Topics are open to other writers, so that no parser here throws. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether a value is a JSON object. */
export const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the first field that is missing or wrong. Further fields are fine: a later version may have them. */
export function wrongField(value: unknown, checks: Checks): string | undefined {
  if (!isFields(value)) return 'the whole value'
  for (const name in checks) if (checks[name]?.(value[name]) !== true) return name
  return undefined
}

/** Whether a value is a text. */
export const isText = (value: unknown): value is string => typeof value === 'string'
/** Whether a value is a whole number from 0 to 2^53 − 1. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0
/** Whether a value is a time as `formatTs` writes it. */
export const isTs = (value: unknown): value is string => isText(value) && parseTs(value) !== undefined
/** Whether a value is a UUID in lower case. */
export const isUuid = (value: unknown): value is string =>
  isText(value) && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value)
/** Checks that a value is one of these. */
export const isOneOf = (known: readonly unknown[]) => (value: unknown) => known.includes(value)
/** Checks that a value is absent, or passes. */
export const isOptional = (check: Check) => (value: unknown) => value === undefined || check(value)
