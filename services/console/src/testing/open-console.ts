import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { OutcomeQuery, UsageQuery } from '@weir/api/query/usage-query.ts'
import type { DeliveryV1 } from '@weir/contracts/delivery.v1.ts'
import type { Impact } from '@weir/explain/impact/impact.ts'
import { AuditLog } from '@weir/policy-changes/audit-log.ts'
import type { ChangeSource } from '@weir/policy-changes/change-store.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import { buildApp } from '../app.ts'
import type { DecisionRow } from '../decisions/decision-queries.ts'
import type { DecisionSource } from '../decisions/decision-source.ts'
import { LiveDecisions } from '../decisions/live-decisions.ts'
import { createSemaphores } from '../http/semaphore.ts'
import type { LimitSource } from '../limits/limit-source.ts'
import type { MoneySource } from '../money/money-source.ts'
import type { AccessSettings, Sources } from '../sources.ts'
import type { UsageSource } from '../usage/usage-source.ts'
import { createMemoryPolicyStore } from './memory-policy-store.ts'

/** The token of the environment. */
const rootToken = 'token'

/** The time of the clock in every test of the console. */
export const nowMs = Date.parse('2026-11-21T12:00:00Z')

/** A policy with one entity of each kind. */
export const smallPolicy = `
version: 1
plans: { free: { limits: [minute] }, gold: { limits: [minute] } }
limits:
  minute: { algorithm: fixed_window, size: 100, window: 1m }
  per-ip: { algorithm: fixed_window, size: 9, window: 1m, by: [ip], applies: all, block: 2m }
routes: [{ match: "POST /v1/search", cost: 5 }]
upstreams: { demo: { url: "http://127.0.0.1:9000", hosts: ["*"] } }
subjects:
  acme: { plan: free, keys: [{ sha256: ${'a'.repeat(64)}, id: acme-1 }] }
endpoints: { ops: { url: "https://ops.example.com/", secretEnv: OPS_SECRET } }
watches: { refusals: { alert: weir.denied_rate.high, per: all } }
tokens:
  reader: { sha256: ${createHash('sha256').update('reader-token').digest('hex')}, scopes: [read] }
  writer: { sha256: ${createHash('sha256').update('writer-token').digest('hex')}, scopes: [write] }
`

/** The only decision there is. */
export const knownDecision = '01a20287-6fb6-7000-8000-00000000000a'
const decision: DecisionRow = {
  id: knownDecision,
  ts_ms: 1,
  subject: 'acme',
  key_id: '',
  plan: 'free',
  route: '*',
  method: 'GET',
  cost: 5,
  count: 1,
  outcome: 'deny',
  reason: 'limit',
  mode: 'enforce',
  charged: 'no',
  denied_by: 'minute',
  shadowed_by: '',
  limits: [{ name: 'minute', size: 100, used: 98, remaining: 2, reset_ms: 9, by: {}, at: '' }],
  policy: -1,
  retry_ms: 9,
  ip: '',
  held: {},
  units: {},
  meter: '',
  dims: {},
  parents: [],
  basis: '',
  corrects: '00000000-0000-0000-0000-000000000000',
  adjustment: 0,
  count_adjustment: 0,
}
const decisions: Pick<DecisionSource, 'list' | 'find' | 'related' | 'policyAt'> = {
  list: async () => [{ row: decision, outcome: undefined, corrections: [] }],
  find: async (_reach, { id }) => (id === knownDecision ? decision : undefined),
  related: async () => ({ outcome: undefined, corrections: [], alerts: [], blockedBy: undefined }),
  policyAt: async () => undefined,
}

/** The id of the only block there is. */
export const knownBlock = 'the-block'
const blocks: LimitSource['blocks'] = {
  read: async () => [
    { name: 'per-ip', subject: '', by: { ip: '192.0.2.7' }, decision: knownDecision, since_ms: 1, refusals: 2 },
  ],
  find: async (scopes) => ({
    blocks: scopes.map((scope) => ({ scope, id: knownBlock, untilMs: nowMs + 1_000 })),
    isWhole: true,
  }),
  lift: async (_key, _limit, forget) => ({ lifted: true, forgotten: forget, used_up: false }),
  keyOf: async (id) => (id === knownBlock ? 'weir:1:{ip%3A192%2E0%2E2%2E7}:per-ip' : undefined),
}

/** The only change that the history has. */
export const knownChange = '01a20287-6fb6-7000-8000-00000000000c'
const change = {
  at_ms: 1,
  body: '{"by":"ci","summary":[{"what":"put","kind":"limit","name":"minute"}],"total":1}',
  entities: [{ kind: 'limit', name: 'minute', before: '', after: '{"size":100}' }],
}

/** The only alert there is; the endpoint `ops` never took it. */
export const knownAlert = '2ed6657d-e927-568b-95e1-2665a8aea6a2'
const alert = {
  id: knownAlert,
  type: 'weir.quota.reached',
  subject: 'acme',
  time: '2026-11-21T11:00:00Z',
  state: 'raised',
  data: JSON.stringify({
    limit: 'day',
    percent: 80,
    size: 5_000,
    used: 4_000,
    decision_id: knownAlert,
    period_start: '2026-11-21T00:00:00Z',
    period_end: '2026-11-22T00:00:00Z',
  }),
}
const givenUp = {
  endpoint: 'ops',
  attempt: 10,
  at: '2026-11-21T11:00:00Z',
  outcome: 'given_up',
  status: 500,
  ms: 12,
  error: 'answered 500',
  next_try: null,
  answer: 'oops',
}

/** How every limit stands. */
const stands = { used: 1, remaining: 99, admits: true, retryMs: 0, resetMs: 9, blockedMs: 0 }

/** What every edit does. */
const refusals = { before: 41, after: 3 }
const impact: Impact = {
  exact: true,
  assumptions: ['The same requests come.'],
  subjects: 1,
  decisions: 90,
  share: 0.9,
  refused: refusals,
  to_refused: 1,
  to_admitted: 39,
  limits: [{ limit: 'minute', edit: 'changed', ...refusals, subjects: [{ subject: 'acme', ...refusals }], routes: [] }],
}

/** What a test sends in addition to method and path. */
export interface AskOptions {
  readonly body?: string | object
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
}

const portalKey = 'the key of portals in the tests of this console'
const money: MoneySource = {
  askPeriodUsage: async () => [],
  askMonthUsage: async () => new Map(),
  askExport: async () => [],
  readCountedOffsets: async () => [],
  readFormerPolicies: async () => new Map(),
}

const access: AccessSettings = {
  publicUrl: undefined,
  ingressUrl: '',
  vendor: { name: '', color: '' },
  portalOrigins: [],
  unsubscribeKey: () => '',
  portalKey: () => portalKey,
}

/** What a test replaces, whichever source has it. */
type Fakes = Partial<Sources & UsageSource & DecisionSource & LimitSource & MoneySource & ChangeSource & AccessSettings>

/** Opens a console on a policy topic in memory, which is asked without a network. */
export function openConsole(fakes: Fakes = {}) {
  const [questions, outcomeQuestions]: [UsageQuery[], OutcomeQuery[]] = [[], []]
  const counts: Parameters<LimitSource['changeCounts']>[] = []
  const [requested, tested, audit]: [DeliveryV1[], string[], AuditLog] = [[], [], new AuditLog()]
  const store = createMemoryPolicyStore(audit)
  const usage: UsageSource = {
    askUsage: async (_reach, question) => {
      questions.push(question)
      return []
    },
    askUsageTotals: async () => ({ count: '0', allowed: '0', denied: '0', cost: '0' }),
    askUnits: async () => [],
    askUnitTotals: async () => ({ quantity: '0', count: '0' }),
    askOutcomes: async (_reach, question) => {
      outcomeQuestions.push(question)
      return []
    },
    openStream: async () => Readable.from([]),
    askUtilization: async () => [],
    askCompleteness: async () => ({ completeThroughMs: undefined, silent: [] }),
    readGaps: async () => [],
    ...fakes,
  }
  const limits: LimitSource = {
    peek: async ({ limits }) => limits.map(({ limit: { name, size } }) => ({ name, size, ...stands })),
    changeCounts: async (...asked) => {
      counts.push(asked)
      return { subject: asked[0].subject.id, changed: [{ name: 'minute', keys: 1, used_up: 0 }], left: [] }
    },
    blocks,
    ...fakes,
  }
  const alerts: Sources['alerts'] = {
    list: async () => [{ ...alert, deliveries: [['ops', 'given_up']] }],
    find: async (_within, id) => (id === knownAlert ? { alert, deliveries: [givenUp] } : undefined),
    listFailed: async () => [{ alert_id: knownAlert, alert_type: alert.type, subject: 'acme', endpoint: 'ops' }],
    async request(rows) {
      requested.push(...rows)
      return rows.length
    },
    async sendTest(endpoint, subject) {
      tested.push(subject === undefined ? endpoint : `${endpoint} ${subject}`)
      return knownAlert
    },
  }
  const live = new LiveDecisions(() => ({ ready: Promise.resolve(), problem: undefined, close: () => undefined }))
  const findChange: ChangeSource['findChange'] = async ({ id }) => (id === knownChange ? change : undefined)
  const sources: Sources = {
    alerts,
    policy: store,
    status: { recentGaps: async () => [], redisProblem: async () => undefined, processes: async () => [] },
    semaphores: createSemaphores(),
    clock: { nowMs: () => nowMs },
    limits,
    ...fakes,
    usage,
    decisions: { ...decisions, askImpact: async () => impact, live, ...fakes },
    money: { ...money, ...fakes },
    changes: { publish: store.publish, audit, findChange, ...fakes },
    access: { ...access, ...fakes },
  }
  const app = buildApp(sources, createLogger('test', 'silent'), () =>
    createHash('sha256').update(rootToken).digest('hex'),
  )
  const ask = (request: string, { body, token = rootToken, headers = {} }: AskOptions = {}) => {
    const [, method, url] = /^(?:(GET|PUT|POST|DELETE|PATCH) )?(.*)$/.exec(request) ?? []
    const type =
      body === undefined ? {} : { 'content-type': typeof body === 'string' ? 'application/yaml' : 'application/json' }
    const options: InjectOptions = {
      url: url ?? '',
      headers: { authorization: `Bearer ${token}`, ...type, ...headers },
    }
    if (body !== undefined) options.payload = body
    const known = (['PUT', 'POST', 'DELETE', 'PATCH'] as const).find((one) => one === method)
    return app.inject({ ...options, method: known ?? 'GET' })
  }
  const applyFile = async (text = smallPolicy): Promise<LightMyRequestResponse> =>
    await ask('PUT /v1/policy', { body: text })
  return { app, ask, applyFile, store, audit, questions, outcomeQuestions, counts, requested, tested }
}

/** The same, with the small policy applied. */
export async function openWithPolicy(overrides: Parameters<typeof openConsole>[0] = {}) {
  const opened = openConsole(overrides)
  await opened.applyFile()
  return opened
}
