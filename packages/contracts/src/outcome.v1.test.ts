import { expect, it } from 'vitest'
import { encodeOutcomeOpen } from './outcome.v1.ts'

it('writes an outcome as one line of JSON that only the log has to close', () => {
  const line = encodeOutcomeOpen({
    id: '0199a6f0-0000-7000-8000-000000000000',
    tsMs: Date.parse('2026-11-21T12:00:10.007Z'),
    subject: 'acme "one"',
    route: 'GET /v1/users/:id',
    method: 'GET',
    status: 200,
    durationMs: 12.345,
    bytesIn: 0,
    bytesOut: 2_147_483_648,
    upstream: 'demo',
    error: 'broken_off',
  })
  expect(line).not.toContain('\n')
  expect(JSON.parse(`${line},"journal":"j","seq":1}`)).toEqual({
    v: 1,
    id: '0199a6f0-0000-7000-8000-000000000000',
    ts: '2026-11-21 12:00:10.007',
    subject: 'acme "one"',
    route: 'GET /v1/users/:id',
    method: 'GET',
    status: 200,
    duration_ms: 12.345,
    bytes_in: 0,
    bytes_out: 2_147_483_648,
    upstream: 'demo',
    error: 'broken_off',
    journal: 'j',
    seq: 1,
  })
})
