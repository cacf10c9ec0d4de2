import { expect, it } from 'vitest'
import { encodeOutcomeOpen } from './outcome.v1.ts'

it('writes an outcome as one line of JSON that only the log has to close', () => {
  const same = {
    id: '0199a6f0-0000-7000-8000-000000000000',
    subject: 'acme "one"',
    route: 'GET /v1/users/:id',
    method: 'GET',
    status: 200,
    upstream: 'demo',
    error: 'broken_off',
  } as const
  const tsMs = Date.parse('2026-11-21T12:00:10.007Z')
  const line = encodeOutcomeOpen({ ...same, tsMs, durationMs: 12.345, bytesIn: 0, bytesOut: 2_147_483_648 })
  expect(line).not.toContain('\n')
  expect(JSON.parse(`${line},"journal":"j","seq":1}`)).toEqual({
    ...same,
    v: 1,
    ts: '2026-11-21 12:00:10.007',
    duration_ms: 12.345,
    bytes_in: 0,
    bytes_out: 2_147_483_648,
    journal: 'j',
    seq: 1,
  })
})
