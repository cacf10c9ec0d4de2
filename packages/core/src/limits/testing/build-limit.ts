import type { Limit } from '../limit.ts'
import type { LimitRequest, ScopeValues } from '../limit-store.ts'

/** A valid limit of 10 a minute per subject; a test states only what matters to it. */
export const buildLimit = (overrides: Partial<Limit> = {}): Limit => ({
  name: 'minute',
  algorithm: 'fixed_window',
  size: 10,
  capacity: overrides.size ?? 10,
  span: { kind: 'window', ms: 60_000 },
  by: [{ kind: 'subject' }],
  applies: 'plan',
  mode: 'enforce',
  blockMs: 0,
  onExceed: { kind: 'deny' },
  lease: 0,
  onUnavailable: 'allow',
  thresholds: [],
  cooldownMs: 0,
  ...overrides,
})

export const buildScope = (overrides: Partial<ScopeValues> = {}): ScopeValues => ({
  subject: 'acme',
  keyId: 'key-1',
  ip: '192.0.2.1',
  route: 'GET /v1/things',
  method: 'GET',
  ...overrides,
})

/** A request of cost 1 on one limit. */
export const buildLimitRequest = (overrides: Partial<LimitRequest> = {}): LimitRequest => ({
  scope: buildScope(),
  cost: 1,
  peek: false,
  limits: [buildLimit()],
  timeZone: 'UTC',
  anchor: 1,
  ...overrides,
})
