import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { uuidv7 } from '@weir/core/ids.ts'

const limits = [{ name: 'minute', size: 100, used: 98, remaining: 2, resetMs: 19_882 }]
const refusal = { outcome: 'deny', reason: 'limit', charged: 'no', deniedBy: 'minute', retryMs: 19_882 } as const

/** A refusal of acme's by `minute`, which costs 5 while 98 of 100 units are used: as Kafka and the tables have it. */
export function refusedRecord(seq: number, more: object = {}) {
  const tsMs = Date.now()
  const decision = decisionInput({ id: uuidv7(tsMs), tsMs, keyId: 'acme-1', cost: 5, limits, ...refusal })
  const journal = '01a20287-6fb6-7000-8000-000000000001'
  return { ...JSON.parse(`${encodeDecisionOpen(decision)}}`), journal, seq, ...more }
}
