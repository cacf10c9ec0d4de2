import { WeirError } from '@weir/core/errors.ts'
import { formatProblem, TextReader } from '@weir/policy/reader/text-reader.ts'
import * as t from '@weir/policy/reader/value-types.ts'

/** Ways to ask for a decision. */
const ways = ['check', 'proxy', 'grpc'] as const

/** One part of a load: a rate of requests, whatever becomes of them, or users who each wait for their answer. */
export type LoadStep =
  | { readonly kind: 'rate'; readonly perSecond: number; readonly forMs: number }
  | { readonly kind: 'users'; readonly users: number; readonly thinkMs: number; readonly forMs: number }

/** A request of the load, with its part of all of them. */
export interface LoadRoute {
  readonly method: string
  readonly path: string
  readonly share: number
  /** Units, where the request says its own cost; else the route's. */
  readonly cost?: number | undefined
}

/** Requests under way at most, each on a connection of its own over HTTP/1.1: no server that stalls is buried. */
export const underWayMax = 1_000
/** Each admitted one is kept with its times until the end, for each of its limits: 60 bytes. */
export const requestsMax = 2_000_000
/** A subject takes a kilobyte with its requests. */
const subjectsMax = 100_000
/** More is a policy and no load. */
const routesMax = 1_000
const stepsMax = 100
const ratePerSecondMax = 100_000

/** The exponent of Zipf's law: 0 asks for all subjects equally, 1 for the n-th a n-th as often as for the first. */
const skew: t.ValueType<number> = {
  schema: { type: 'number', minimum: 0, maximum: 5 },
  read(reader, at) {
    const value = reader.scalar(at)
    return typeof value === 'number' && value >= 0 && value <= 5 ? value : reader.wrong(at, 'must be from 0 to 5')
  },
}

const requestText = t.text('a method and a path such as POST /v1/search', (text) => {
  const [, method, path] = /^([A-Z][A-Z-]{0,31}) (\/[^\s]*)$/.exec(text) ?? []
  return method === undefined || path === undefined ? undefined : { method, path }
})

const route = t.object('a route', {
  route: t.required('Method and path.', requestText),
  share: t.withDefault('Relative frequency of this route.', t.integer(1, 1_000_000), 1),
  cost: t.optional('Units per request, if requests state their own cost.', t.integer(0, 1_000_000_000)),
})

const step = t.checked(
  t.object('a step', {
    rate: t.optional('Requests a second.', t.integer(1, ratePerSecondMax)),
    users: t.optional(
      'Concurrent users. Each waits for a response before the next request.',
      t.integer(1, underWayMax),
    ),
    think: t.optional('How long each user pauses after a response.', t.duration('1ms', '1h')),
    for: t.required('How long.', t.duration('1s', '24h')),
  }),
  ({ rate, users, think, for: forMs }, reader, at): LoadStep | undefined => {
    if ((rate === undefined) === (users === undefined)) return reader.problem(at, 'needs either `rate` or `users`')
    if (users !== undefined) return { kind: 'users', users, thinkMs: think ?? 0, forMs }
    if (think !== undefined) return reader.problem(at, 'has `think`, which users have and a `rate` has not')
    return { kind: 'rate', perSecond: rate ?? 0, forMs }
  },
)

/** `customer-{1..1000}` as a thousand subjects; any other text as itself. */
function expanded(written: string): readonly string[] | undefined {
  const [, before, from, to, after] = /^([^{}]*)\{(\d{1,9})\.\.(\d{1,9})\}([^{}]*)$/.exec(written) ?? []
  if (from === undefined) return /[{}]/.test(written) || written === '' ? undefined : [written]
  const count = Number(to) - Number(from) + 1
  if (count < 1 || count > subjectsMax) return undefined
  return Array.from({ length: count }, (_, at) => `${before}${Number(from) + at}${after}`)
}

const members = {
  via: t.withDefault('How decisions are asked for.', t.oneOf(ways), 'check'),
  target: t.optional('URL to test. Must be on this machine, unless --target gives the same URL.', t.anyText('a URL')),
  subjects: t.optional(
    'Who asks.',
    t.list('a list of subjects', t.text('a subject, or several such as customer-{1..1000}', expanded), { min: 1 }),
  ),
  skew: t.withDefault('How unequally often: 0 equally.', skew, 0),
  routes: t.optional('What is asked for.', t.list('a list of routes', route, { min: 1, max: routesMax })),
  steps: t.withDefault('One after the other.', t.list('a list of steps', step, { min: 1, max: stepsMax }), []),
}
const profile = t.object('a profile of a load', members)

/** What flags say, each in the words of the file. */
type ProfileFlags = Readonly<Record<string, unknown>>

/** Requests that a load makes at most; those of users are not known beforehand. */
const requestsOf = (steps: readonly LoadStep[]) =>
  steps.reduce((sum, one) => sum + (one.kind === 'rate' ? (one.perSecond * one.forMs) / 1_000 : 0), 0)

/** Reads a file, or flags as one without a name. Throws COMMAND_INVALID with every problem, of a file with its line. */
function readPart(text: string, name?: string) {
  const reader = new TextReader(name ?? '')
  const at = reader.open(text)
  const found = at === undefined ? undefined : profile.read(reader, at)
  if (found !== undefined) return found
  const ofFlag = ({ path, message }: { readonly path: string; readonly message: string }) => `${path}: ${message}`
  const lines = reader.problems.map(name === undefined ? ofFlag : formatProblem)
  throw new WeirError('COMMAND_INVALID', `The load profile has mistakes.\n  ${lines.join('\n  ')}`)
}

/** Reads the profile of a file, with what flags say instead. Throws COMMAND_INVALID. */
export function readProfile(file: { readonly text: string; readonly name: string } | undefined, flags: ProfileFlags) {
  const written = file === undefined ? undefined : readPart(file.text, file.name)
  const flagged = readPart(JSON.stringify(flags))
  const pick = <K extends keyof typeof flagged>(name: K) => (name in flags ? flagged[name] : (written ?? flagged)[name])
  const subjects = pick('subjects')?.flat()
  const steps = pick('steps')
  if (steps.length === 0)
    throw new WeirError('COMMAND_INVALID', 'Name a rate with --rate N, users with --users N, or a --profile.')
  if (subjects !== undefined && subjects.length > subjectsMax)
    throw new WeirError('COMMAND_INVALID', `These are ${subjects.length} subjects; a load has at most ${subjectsMax}.`)
  if (requestsOf(steps) > requestsMax) {
    const what = `These are ${requestsOf(steps)} requests; a load has at most ${requestsMax}`
    throw new WeirError('COMMAND_INVALID', `${what}. Make its steps shorter, or their rates lower.`)
  }
  const routes = pick('routes')?.map(({ route: asked, ...rest }): LoadRoute => ({ ...asked, ...rest }))
  return { via: pick('via'), target: pick('target'), subjects, skew: pick('skew'), routes, steps }
}

/** A load as a file or flags describe it. What is undefined follows from the policy. */
export type Profile = ReturnType<typeof readProfile>
