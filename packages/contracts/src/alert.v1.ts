import type { AlertType } from '@weir/core/alerts/alert-types.ts'
import { type Checks, isCount, isFields, isOptional, isText, isUuid, parseJson, wrongField } from './fields.ts'
import { parseTraceparent } from './trace-context.ts'

/** A subject's denials or allowed requests differ from what is usual. */
interface RateChangedV1 {
  /** Name of the watch that found it. */
  readonly watch: string
  readonly window_start: string
  readonly window_end: string
  /** Decisions in the window: denied, or allowed. */
  readonly count: number
  /** Decisions in a window of the same length, on average over the time before. */
  readonly usual: number
}

/** What the limit counted by beyond the subject, as the decision's record has it; absent for nothing. */
type CountedBy = Readonly<Record<string, string>>

/** One alert in a digest. */
export interface DigestedAlertV1 {
  readonly id: string
  readonly type: string
  readonly time: string
  /** What happened, in a sentence. */
  readonly title: string
}

/** The value of an alert's record, by `ce_type`. Times are RFC 3339, UTC. */
interface AlertDataByType {
  /** A limit's use has reached a threshold. */
  readonly 'weir.quota.reached': {
    readonly limit: string
    readonly size: number
    readonly used: number
    /** The threshold, in percent of the size. */
    readonly percent: number
    readonly period_start: string
    readonly period_end: string
    /** The decision that crossed the threshold. */
    readonly decision_id: string
    readonly by?: CountedBy
  }
  /** At the pace of the period so far the quota is used up before the period ends. */
  readonly 'weir.quota.forecast': {
    readonly limit: string
    readonly size: number
    readonly used: number
    /** When it is used up at that pace. */
    readonly runs_out: string
    readonly period_start: string
    readonly period_end: string
    /** The decision that it was found by. */
    readonly decision_id: string
    readonly by?: CountedBy
  }
  /** What a subject's running period costs so far has reached a threshold of its budget. Amounts are decimal text. */
  readonly 'weir.budget.reached': {
    /** The price list. */
    readonly prices: string
    readonly currency: string
    readonly budget: string
    /** The price of what was counted when it was found. */
    readonly amount: string
    /** The threshold, in percent of the budget. */
    readonly percent: number
    /** The month in which the period begins: `2026-11`. */
    readonly period: string
    readonly period_start: string
    readonly period_end: string
  }
  /** A subject exceeded a limit with `block`, and is blocked. */
  readonly 'weir.limit.blocked': {
    readonly limit: string
    readonly size: number
    readonly until: string
    /** The first denial that was read. */
    readonly decision_id: string
    readonly by?: CountedBy
    /**
     * Only in the alert that ends an hour: how many blocks of this subject by this limit had no alert of their own.
     * That alert has no `by`, and `until` is the end of the hour.
     */
    readonly more?: number
  }
  readonly 'weir.denied_rate.high': RateChangedV1
  readonly 'weir.allowed.high': RateChangedV1
  readonly 'weir.allowed.dropped': RateChangedV1
  /** The alerts of a subject in a day or a week, for addresses of its contact that get them together. */
  readonly 'weir.alerts.digest': {
    /** The endpoint of type `subject` that sends it. */
    readonly endpoint: string
    /** `daily` or `weekly`. */
    readonly digest: string
    readonly period_start: string
    readonly period_end: string
    /** Alerts in the period, at most 200. */
    readonly count: number
    /** The first of them, in the order in which they were raised. */
    readonly alerts?: readonly DigestedAlertV1[]
  }
  /** An endpoint answered that it accepts no more webhooks. */
  readonly 'weir.endpoint.disabled': { readonly endpoint: string; readonly reason: string }
  /** A person asked whether an endpoint works. */
  readonly 'weir.endpoint.test': { readonly endpoint: string }
}

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
  readonly data: AlertDataByType[T]
}

/** An alert of any type. */
export type AlertV1 = { [T in AlertType]: AlertOf<T> }[AlertType]

/** An alert as it goes to Kafka. */
export interface AlertRecordV1 {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** `time` is RFC 3339 in UTC, `count` a whole number from 0 on. */
type FieldKind = 'text' | 'time' | 'uuid' | 'count' | 'number'
type FieldsOf<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: FieldKind }

const isTexts = (value: unknown) => isFields(value) && Object.values(value).every(isText)
const digestedFields: Checks<keyof DigestedAlertV1> = { id: isUuid, type: isText, time: isText, title: isText }
const isDigested = (value: unknown) =>
  Array.isArray(value) && value.every((one) => isFields(one) && wrongField(one, digestedFields) === undefined)
/** Fields that alerts have only where there is something to say. */
const optionalFields: Checks = { by: isOptional(isTexts), more: isOptional(isCount), alerts: isOptional(isDigested) }

/**
 * The fields that each type's value has at least; docs/schemas/weir.alerts.v1.json says the same, and a test holds them
 * together.
 */
export const alertFields: { readonly [T in AlertType]: FieldsOf<AlertDataByType[T]> } = {
  'weir.quota.reached': {
    limit: 'text',
    size: 'count',
    used: 'count',
    percent: 'number',
    period_start: 'time',
    period_end: 'time',
    decision_id: 'uuid',
  },
  'weir.quota.forecast': {
    limit: 'text',
    size: 'count',
    used: 'count',
    runs_out: 'time',
    period_start: 'time',
    period_end: 'time',
    decision_id: 'uuid',
  },
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
  'weir.limit.blocked': { limit: 'text', size: 'count', until: 'time', decision_id: 'uuid' },
  'weir.denied_rate.high': { watch: 'text', window_start: 'time', window_end: 'time', count: 'count', usual: 'number' },
  'weir.allowed.high': { watch: 'text', window_start: 'time', window_end: 'time', count: 'count', usual: 'number' },
  'weir.allowed.dropped': { watch: 'text', window_start: 'time', window_end: 'time', count: 'count', usual: 'number' },
  'weir.alerts.digest': { endpoint: 'text', digest: 'text', period_start: 'time', period_end: 'time', count: 'count' },
  'weir.endpoint.disabled': { endpoint: 'text', reason: 'text' },
  'weir.endpoint.test': { endpoint: 'text' },
}

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/
/** ClickHouse's days end in 2149, and a time of another century is a mistake. */
const timesMs = [Date.UTC(2000, 0), Date.UTC(2100, 0)] as const

function isTime(text: string): boolean {
  const ms = timeForm.test(text) ? Date.parse(text) : Number.NaN
  return ms >= timesMs[0] && ms < timesMs[1]
}

const isKind: Checks<FieldKind> = {
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

function isDataOf<T extends AlertType>(type: T, value: unknown): value is AlertDataByType[T] {
  const known: Readonly<Record<string, FieldKind>> = alertFields[type]
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
