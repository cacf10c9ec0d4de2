import { createHash } from 'node:crypto'

/** One for each connection, so that no two requests under way share a count: the dearest case for calls that gather. */
export const callers = 64

/** Of the bench's own Redis and its own policy; it opens nothing else. */
const token = 'bench-token-that-opens-nothing-but-this-run'

export const tokenSha256 = createHash('sha256').update(token).digest('hex')

/** The same for every server; only Weir looks at the token. */
export const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }

/** The same for every server; the others look at the subject alone. */
export const bodyOf = (caller: number): string =>
  JSON.stringify({ subject: `caller-${caller}`, route: 'GET /v1/things' })

/** Every caller has two limits that no run uses up: a window, and a quota by the calendar. */
export function policyText(): string {
  const subjects = Array.from({ length: callers }, (_, caller) => `  caller-${caller}: { plan: bench }`)
  return `version: 1
plans: { bench: { limits: [minute, day] } }
limits:
  minute: { algorithm: fixed_window, size: 1000000000, window: 1m }
  day: { algorithm: fixed_window, size: 1000000000, period: day }
subjects:
${subjects.join('\n')}
`
}
