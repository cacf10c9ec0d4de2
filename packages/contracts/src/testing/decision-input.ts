import type { DecisionInput } from '../decision.v1.ts'

/** An allowed decision of acme's, without limits; a test states only what matters to it. */
export const decisionInput = (given: Partial<DecisionInput> = {}): DecisionInput => ({
  id: '019b7b5e-0000-7000-8000-000000000000',
  tsMs: 0,
  subject: 'acme',
  keyId: 'k1',
  plan: 'free',
  route: '*',
  method: 'GET',
  cost: 1,
  count: 1,
  outcome: 'allow',
  reason: 'ok',
  mode: 'enforce',
  charged: 'yes',
  deniedBy: '',
  limits: [],
  ...given,
})
