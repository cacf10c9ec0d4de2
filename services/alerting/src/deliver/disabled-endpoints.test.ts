import type { Target } from '@weir/policy/policy.ts'
import { expect, it } from 'vitest'
import { createDisabledEndpoints } from './disabled-endpoints.ts'

const named = (name: string) => ({ type: 'slack', name, urlEnv: 'HOOK' }) as Target

it.each(['constructor', 'toString', 'odd'])(
  'sends to an endpoint named %s, of which Redis has nothing or no JSON',
  async (name) => {
    const redis = { hgetall: async () => ({ odd: 'no JSON' }) }
    const options = { redis, publish: async () => undefined, clock: { nowMs: () => 0 }, log: {} }
    const endpoints = createDisabledEndpoints(options as never)
    expect(await endpoints.reasonFor(named(name))).toBeUndefined()
  },
)
