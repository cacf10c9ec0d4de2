import type { Alert } from '../answers.ts'

const nameOf = (subject: string) =>
  ({ _all: 'All subjects together', _unauthenticated: 'Callers without a valid key' })[subject] ?? subject

/** An alert in a line: who, what, how far. */
export function describeAlert({ type, subject, data }: Pick<Alert, 'type' | 'subject' | 'data'>): string {
  const [who, limit] = [nameOf(subject), String(data.limit ?? '')]
  switch (type) {
    case 'weir.quota.reached':
      return `${who} has used ${data.percent} % of ${limit}`
    case 'weir.quota.forecast':
      return `${who} will have used up ${limit} before its period ends`
    case 'weir.budget.reached':
      return `${who} has reached ${data.percent} % of its budget`
    case 'weir.limit.blocked':
      return data.more === undefined
        ? `${who} is blocked by ${limit}`
        : `${limit} has blocked ${data.more} more of ${who}`
    case 'weir.denied_rate.high':
      return `${who}: refused far more often than usual`
    case 'weir.allowed.high':
      return `${who}: far more requests than usual`
    case 'weir.allowed.dropped':
      return `${who}: far fewer requests than usual`
    case 'weir.endpoint.disabled':
      return `The endpoint ${data.endpoint} takes no more alerts`
    case 'weir.endpoint.test':
      return `A test of the endpoint ${data.endpoint}`
    default:
      return `${who}: ${type}`
  }
}
