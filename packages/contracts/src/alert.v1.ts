import type { AlertType } from '@weir/core/alerts/alert-types.ts'
import { type Checks, isCount, isFields, isOptional, isText, isUuid, parseJson, wrongField } from './fields.ts'
import { parseTraceparent } from './trace-context.ts'

/** The kinds of fields: `time` is RFC 3339 in UTC, `count` a whole number from 0 on. */
interface FieldKinds {
  readonly text: string
  readonly time: string
  readonly uuid: string
  readonly count: number
  readonly number: number
}

/** How far a limit is used in its period, and the decision that found it. */
const quota = {
  limit: 'text',
  size: 'count',
  used: 'count',
  period_start: 'time',
  period_end: 'time',
  decision_id: 'uuid',
} as const

/** The decisions of a subject in a window, denied or allowed, and their usual number in one of the same length. */
const rate = { watch: 'text', window_start: 'time', window_end: 'time', count: 'count', usual: 'number' } as const

/**
 * The fields that each type's value has at least; docs/schemas/weir.alerts.v1.json says the same, and a test holds them
 * together.
 */
export const alertFields = {
  /** A limit's use has reached a threshold, `percent` of its size. */
  'weir.quota.reached': { ...quota, percent: 'number' },
  /**
   * The alert `resolves` is over since its period has ended, the limit's size has changed, or less is used (`reason`:
   * `period_ended`, `size_changed`, `used_less`). `size` and `used` are those of now, at a period's end those of the
   * alert; all else is the alert's, and `reached_at` its time.
   */
  'weir.quota.resolved': { ...quota, percent: 'number', resolves: 'uuid', reached_at: 'time', reason: 'text' },
  /** At the pace of the period so far the quota is used up at `runs_out`, before the period ends. */
  'weir.quota.forecast': { ...quota, runs_out: 'time' },
  /** Raised before 0.11: a subject's month (`period`: `2026-11`) cost `amount`, `percent` of its `budget`. */
  'weir.budget.reached': {
    prices: 'text',
    currency: 'text',
    budget: 'text',
    amount: 'text',
    percent: 'number',
    period: 'text',
    period_start: 'time',
    period_end: 'time',
  },
  /** A subject exceeded a limit with `block`, and is blocked; the decision is the first denial that was read. */
  'weir.limit.blocked': { limit: 'text', size: 'count', until: 'time', decision_id: 'uuid' },
  'weir.denied_rate.high': rate,
  'weir.allowed.high': rate,
  'weir.allowed.dropped': rate,
  /**
   * The alerts of a subject in a day or a week (`digest`: `daily` or `weekly`), at most 200, for addresses of its
   * contact that got them together; `endpoint` is the one of type `subject` that sends it.
   */
  'weir.alerts.digest': { endpoint: 'text', digest: 'text', period_start: 'time', period_end: 'time', count: 'count' },
  /** An endpoint answered that it accepts nothing more. */
  'weir.endpoint.disabled': { endpoint: 'text', reason: 'text' },
  /** A person asked whether an endpoint works. */
  'weir.endpoint.test': { endpoint: 'text' },
} as const satisfies Readonly<Record<AlertType, Readonly<Record<string, keyof FieldKinds>>>>

/** One alert in a digest; `title` says what happened, in a sentence. */
type DigestedAlertV1 = Readonly<Record<'id' | 'type' | 'time' | 'title', string>>

/**
 * What the limit counted by beyond the subject, as the decision's record has it; absent for nothing. What it counts, if
 * neither costs nor requests; and if that is money its currency: `size` and `used` are billionths of it.
 */
interface CountedBy {
  readonly by?: Readonly<Record<string, string>>
  readonly unit?: string
  readonly currency?: string
}

/** Fields that alerts have only where there is something to say. */
interface OptionalFields {
  readonly 'weir.quota.reached': CountedBy
  readonly 'weir.quota.resolved': CountedBy
  readonly 'weir.quota.forecast': CountedBy
  readonly 'weir.limit.blocked': CountedBy & {
    /**
     * Only in the alert that ends an hour: how many blocks of this subject by this limit had no alert of their own.
     * That alert has no `by`, and `until` is the end of the hour.
     */
    readonly more?: number
  }
  /** The first alerts of the period, in the order in which they were raised. */
  readonly 'weir.alerts.digest': { readonly alerts?: readonly DigestedAlertV1[] }
}

type FieldValues<F> = { readonly [K in keyof F]: F[K] extends keyof FieldKinds ? FieldKinds[F[K]] : never }

/** The value of an alert's record, by `ce_type`. */
type AlertData<T extends AlertType> = FieldValues<(typeof alertFields)[T]> &
  (T extends keyof OptionalFields ? OptionalFields[T] : unknown)

/** An alert of a type in `weir.alerts.v1`, a CloudEvent in binary mode. Key = subject. */
export interface AlertOf<T extends AlertType> {
  /** UUID version 5 of the claim: the same alert raised again has the same id. */
  readonly id: string
  readonly type: T
  /** The subject, or the endpoint if the alert is about one. */
  readonly subject: string
  /** RFC 3339, UTC: when it was raised. */
  readonly time: string
  /** W3C's header of the span that raised it, where its decision is traced; CloudEvents' tracing extension. */
  readonly traceparent?: string
  readonly data: AlertData<T>
}

/** An alert of any type. */
export type AlertV1 = { [T in AlertType]: AlertOf<T> }[AlertType]

/** An alert as it goes to Kafka. */
export interface AlertRecordV1 {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

const isTexts = (value: unknown) => isFields(value) && Object.values(value).every(isText)
const digestedFields: Checks<keyof DigestedAlertV1> = { id: isUuid, type: isText, time: isText, title: isText }
const isDigested = (value: unknown) =>
  Array.isArray(value) && value.every((one) => isFields(one) && wrongField(one, digestedFields) === undefined)
const optionalFields: Checks = {
  by: isOptional(isTexts),
  unit: isOptional(isText),
  currency: isOptional(isText),
  more: isOptional(isCount),
  alerts: isOptional(isDigested),
}

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/
/** ClickHouse's days end in 2149, and a time of another century is a mistake. */
const timesMs = [Date.UTC(2000, 0), Date.UTC(2100, 0)] as const

function isTime(text: string): boolean {
  const ms = timeForm.test(text) ? Date.parse(text) : Number.NaN
  return ms >= timesMs[0] && ms < timesMs[1]
}

const isKind: Checks<keyof FieldKinds> = {
  text: isText,
  time: (value) => isText(value) && isTime(value),
  uuid: isUuid,
  count: isCount,
  number: Number.isFinite,
}

const alertSource = '/weir'

/** The CloudEvents attributes become headers beginning `ce_`; the value is the data alone. */
export function encodeAlert({ id, type, subject, time, traceparent, data }: AlertV1): AlertRecordV1 {
  return {
    key: subject,
    value: JSON.stringify(data),
    headers: {
      ce_specversion: '1.0',
      ce_id: id,
      ce_source: alertSource,
      ce_type: type,
      ce_subject: subject,
      ce_time: time,
      ...(traceparent === undefined ? {} : { ce_traceparent: traceparent }),
      'content-type': 'application/json',
    },
  }
}

/** The result of reading a record. */
export type ParsedAlert =
  | { readonly kind: 'alert'; readonly alert: AlertV1 }
  | { readonly kind: 'unreadable'; readonly reason: string }

const isAlertType = (text: string): text is AlertType => Object.hasOwn(alertFields, text)

function isDataOf<T extends AlertType>(type: T, value: unknown): value is AlertData<T> {
  const known: Readonly<Record<string, keyof FieldKinds>> = alertFields[type]
  const hasKnown = isFields(value) && Object.entries(known).every(([name, kind]) => isKind[kind](value[name]))
  return hasKnown && wrongField(value, optionalFields) === undefined
}

const isAlert = (alert: Omit<AlertV1, 'data'> & { readonly data: unknown }): alert is AlertV1 =>
  isDataOf(alert.type, alert.data)

/** Makes an alert of its attributes and its value's text. Never throws. */
export function readAlert(of: {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly time: string
  readonly traceparent?: string | undefined
  readonly text: string
}): ParsedAlert {
  const { id, type, subject, time, traceparent, text } = of
  if (!isAlertType(type)) return { kind: 'unreadable', reason: `unknown type ${type}` }
  if (!isUuid(id) || !isTime(time)) return { kind: 'unreadable', reason: 'the id is no UUID, or the time none' }
  const data = parseJson(text)
  if (data === undefined) return { kind: 'unreadable', reason: 'the value is not JSON' }
  // One that is not valid is none, as W3C says.
  const isTraced = traceparent !== undefined && parseTraceparent(traceparent) !== undefined
  const alert = { id, type, subject, time, ...(isTraced ? { traceparent } : {}), data }
  if (!isAlert(alert)) return { kind: 'unreadable', reason: 'a field of the value is missing or wrong' }
  return { kind: 'alert', alert }
}

/** Reads an alert's record. Never throws: the topic is a public feed, and others may write to it. */
export function parseAlert(value: Buffer | null, headers: Readonly<Record<string, string>>): ParsedAlert {
  const { ce_specversion: version, ce_id: id, ce_type: type, ce_subject: subject, ce_time: time } = headers
  if (version !== '1.0' || headers.ce_source !== alertSource) {
    return { kind: 'unreadable', reason: 'not an event of Weir' }
  }
  if (id === undefined || type === undefined || subject === undefined || time === undefined) {
    return { kind: 'unreadable', reason: 'ce_id, ce_type, ce_subject or ce_time is missing' }
  }
  return readAlert({
    id,
    type,
    subject,
    time,
    traceparent: headers.ce_traceparent,
    text: value?.toString('utf8') ?? '',
  })
}
