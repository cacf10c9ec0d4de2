import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { putEntity } from '@weir/policy/entities.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import {
  decodedEntities,
  encodedEntities,
  entities,
  entity,
  keyHash,
  manyRoutes,
  subjectName,
  subjects,
} from './million.ts'

/** What one process start with a million subjects is like. */
export interface StateFigures {
  readonly loadSeconds: number
  /** Of all threads, the garbage collector's too. */
  readonly loadCpuSeconds: number
  readonly heapBytesPerSubject: number
  readonly rssBytesPerSubject: number
  readonly getKeyMicros: number
  readonly putKeyMicros: number
  readonly putSubjectMicros: number
  readonly putLimitMillis: number
  readonly pageMillis: number
  readonly putLimitOfRoutesMillis: number
  readonly putRouteMillis: number
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function timed(times: number, act: (n: number) => void): number {
  const startedAt = performance.now()
  for (let n = 0; n < times; n += 1) act(n)
  return (performance.now() - startedAt) / times
}

function change(state: PolicyState, ...changed: readonly ReturnType<typeof entity>[]): void {
  const answer = state.apply(changed.map(putEntity))
  if (answer.kind === 'problems') throw new Error(JSON.stringify(answer.problems))
}

/** A limit and a route edited among 10,000 routes, which is as many as a policy has. */
function measureRoutes(): Pick<StateFigures, 'putLimitOfRoutesMillis' | 'putRouteMillis'> {
  const state = new PolicyState()
  state.load(manyRoutes())
  return {
    putLimitOfRoutesMillis: timed(10, (n) =>
      change(state, entity('limit', 'day', { algorithm: 'fixed_window', size: 100 + n, period: 'day' })),
    ),
    putRouteMillis: timed(10, (n) => change(state, entity('route', `GET /v1/${n}/:id`, { cost: 2 }))),
  }
}

function measure(source: string): StateFigures {
  const blocks = source === 'lines' ? encodedEntities() : []
  collectGarbage()
  const before = process.memoryUsage()
  const state = new PolicyState()
  const cpu = process.cpuUsage()
  const loadSeconds = timed(1, () => state.load(source === 'lines' ? decodedEntities(blocks) : entities())) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  collectGarbage()
  const after = process.memoryUsage()
  const hashes = Array.from({ length: 10_000 }, (_, n) => keyHash((n * 7_919) % subjects))
  const { policy } = state
  const getOne = (n: number) => {
    const key = policy.keys.get(hashes[n % hashes.length] ?? '')
    if (key?.subject.plan === undefined) throw new Error('a key is missing')
  }
  timed(10_000, getOne)
  return {
    loadSeconds,
    loadCpuSeconds: (user + system) / 1e6,
    heapBytesPerSubject: (after.heapUsed - before.heapUsed) / subjects,
    rssBytesPerSubject: (after.rss - before.rss) / subjects,
    getKeyMicros: timed(100_000, getOne) * 1_000,
    putKeyMicros:
      timed(5_000, (n) => change(state, entity('key', keyHash(-n - 1), { subject: subjectName(n) }))) * 1_000,
    putSubjectMicros: timed(5_000, (n) => change(state, entity('subject', subjectName(n), { plan: 'top' }))) * 1_000,
    putLimitMillis: timed(10, (n) =>
      change(state, entity('limit', 'day', { algorithm: 'fixed_window', size: 100 + n, period: 'day' })),
    ),
    pageMillis: timed(10, () => state.page('subject', 'customer-05', 101)),
    ...measureRoutes(),
  }
}

// A process for each round: what one has left on the heap would be the next one's.
const figures = measure(process.argv[2] ?? '')
process.send?.(figures)
