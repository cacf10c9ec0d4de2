/** What an alert is about; `ce_type`. */
const alertTypes = [
  'weir.quota.reached',
  'weir.limit.blocked',
  'weir.denied_rate.high',
  'weir.allowed.dropped',
] as const
export type AlertType = (typeof alertTypes)[number]

/** The value of an alert's record. */
export interface AlertDataV1 {
  readonly limit: string
  readonly size: number
  readonly used: number
  readonly percent: number
  /** RFC 3339, UTC, like `period_end`. */
  readonly period_start: string
  readonly period_end: string
  /** The decision that crossed the threshold. */
  readonly decision_id: string
}

/** An alert of `weir.alerts.v1`, a CloudEvent in binary mode. Key = subject. */
export interface AlertV1 {
  /** UUID version 5 of the claim: the same alert raised again has the same id. */
  readonly id: string
  readonly type: AlertType
  readonly subject: string
  /** RFC 3339, UTC: when it was raised. */
  readonly time: string
  readonly data: AlertDataV1
}

/** An alert as it goes to Kafka. */
export interface AlertRecordV1 {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

const source = '/weir'

/** The CloudEvents attributes become headers beginning `ce_`; the value is the data alone. */
export function encodeAlert({ id, type, subject, time, data }: AlertV1): AlertRecordV1 {
  return {
    key: subject,
    value: JSON.stringify(data),
    headers: {
      ce_specversion: '1.0',
      ce_id: id,
      ce_source: source,
      ce_type: type,
      ce_subject: subject,
      ce_time: time,
      'content-type': 'application/json',
    },
  }
}

export type ParsedAlert =
  | { readonly kind: 'alert'; readonly alert: AlertV1 }
  | { readonly kind: 'unreadable'; readonly reason: string }

const textFields = ['limit', 'period_start', 'period_end', 'decision_id']
const numberFields = ['size', 'used', 'percent']

function isData(value: unknown): value is AlertDataV1 {
  if (typeof value !== 'object' || value === null) return false
  const fields: Readonly<Record<string, unknown>> = { ...value }
  return (
    textFields.every((name) => typeof fields[name] === 'string') &&
    numberFields.every((name) => typeof fields[name] === 'number')
  )
}

function isAlertType(text: string): text is AlertType {
  return alertTypes.some((known) => known === text)
}

/** Reads an alert's record. Never throws: the topic is a public feed, and others may write to it. */
export function parseAlert(value: Buffer | null, headers: Readonly<Record<string, string>>): ParsedAlert {
  const { ce_specversion: version, ce_id: id, ce_type: type, ce_subject: subject, ce_time: time } = headers
  if (version !== '1.0' || headers.ce_source !== source) return { kind: 'unreadable', reason: 'not an event of Weir' }
  if (id === undefined || type === undefined || subject === undefined || time === undefined) {
    return { kind: 'unreadable', reason: 'ce_id, ce_type, ce_subject or ce_time is missing' }
  }
  if (!isAlertType(type)) return { kind: 'unreadable', reason: `unknown type ${type}` }
  let data: unknown
  try {
    data = JSON.parse(value?.toString('utf8') ?? '')
  } catch {
    return { kind: 'unreadable', reason: 'the value is not JSON' }
  }
  if (!isData(data)) return { kind: 'unreadable', reason: 'the value lacks a field' }
  return { kind: 'alert', alert: { id, type, subject, time, data } }
}
