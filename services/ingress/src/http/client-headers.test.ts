import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, it } from 'vitest'
import { createReadHeaders } from './client-headers.ts'

it('Connection names no cookies where a limit counts by one: it would be counted, and then withheld', () => {
  const problem = (by: string) => {
    const limit = `{ algorithm: fixed_window, size: 1, window: 1m, by: ["${by}"] }`
    return createReadHeaders(requirePolicy(`{ version: 1, limits: { m: ${limit} } }`, 'weir.yaml')).problemOf(
      new Set(['cookie']),
    )
  }
  expect([problem('cookie:sid')?.status, problem('header:x')?.status]).toEqual([400, undefined])
})
