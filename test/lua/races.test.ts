import { randomUUID } from 'node:crypto'
import { algorithms, type Limit } from '@weir/core/limits/limit.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { expect, inject, test } from 'vitest'
import { createModelEngine } from '../support/decide-engines.ts'
import { runRace } from '../support/run-race.ts'

const processes = 4
const connections = 8
const requests = 40
const nowMs = 1_790_000_000_000

const raceOver = (limits: readonly Limit[]) => ({
  redisUrl: inject('redisUrl'),
  connections,
  request: buildLimitRequest({ scope: buildScope({ subject: randomUUID() }), limits }),
})

test.each(algorithms)(
  '32 connections of 4 processes at one instant are admitted exactly 137 times by %s, and other limits count only those',
  async (algorithm) => {
    const wide = buildLimit({ name: 'wide', size: 9_000, algorithm })
    const narrow = buildLimit({ name: 'narrow', size: 137, algorithm })
    const race = raceOver([wide, narrow])
    const decisions = await runRace(processes, { ...race, pace: { kind: 'instant', nowMs, requests } })
    const count = (wanted: string) => decisions.filter(([, reason]) => reason === wanted).length
    expect(count('ok')).toBe(137)
    expect(count('limit')).toBe(processes * connections * requests - 137)
    expect(Math.max(...decisions.map(([, , used]) => used))).toBe(137)
    const after = { ...race.request, limits: [wide], peek: true }
    const [look] = await runRace(1, {
      ...race,
      connections: 1,
      request: after,
      pace: { kind: 'instant', nowMs, requests: 1 },
    })
    expect(look?.[2]).toBe(137)
  },
)

test.each(algorithms)(
  '32 connections of 4 processes over real time get from %s exactly what its model gives for the times that Redis recorded',
  async (algorithm) => {
    const limit = buildLimit({ size: 40, algorithm, span: { kind: 'window', ms: 500 } })
    const race = raceOver([limit])
    const decisions = await runRace(processes, { ...race, pace: { kind: 'real', durationMs: 2_500 } })
    // One process at a time runs a script, so no two calls have one time; within a call the order is that of the
    // answers.
    const inOrder = decisions.sort(([a], [b]) => a - b)
    const model = createModelEngine()
    const expected: [number, string, number][] = []
    for (const [atUs] of inOrder) {
      const { outcomes } = await model.decide({ requests: [race.request], nowMs: atUs / 1_000 })
      const [outcome] = outcomes
      if (outcome !== undefined && 'reason' in outcome)
        expected.push([atUs, outcome.reason, outcome.limits[0]?.used ?? -1])
    }
    expect(inOrder).toEqual(expected)
    expect(inOrder.filter(([, reason]) => reason === 'ok').length).toBeGreaterThan(100)
  },
)
