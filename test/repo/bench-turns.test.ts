import { expect, test } from 'vitest'
import type { Measured } from '../bench/ingress/measure.ts'
import { targetRatios, targetRows } from '../bench/ingress/targets.ts'
import { groups, othersShareMax, type Turn, undisturbed } from '../bench/ingress/turns.ts'

const one: Measured = {
  requests: 1,
  requestsPerSecond: 1,
  p50Ms: 1,
  p99Ms: 1,
  generatorCores: 1,
  serverCpuUs: 1,
  behindCpuUs: 1,
  mainThreadCpuUs: 1,
  redisCpuUs: 1,
  kafkaCpuUs: 1,
}
const turn = (othersShare: number): Turn => ({ measured: new Map([['check', one]]), othersShare })

test('The ingress bench leaves out turns that other programs disturbed, and keeps all where none would remain', () => {
  const [quiet, atTheBound, disturbed] = [turn(0), turn(othersShareMax), turn(othersShareMax + 0.01)]
  expect(undisturbed([quiet, disturbed, atTheBound])).toEqual([quiet, atTheBound])
  expect(undisturbed([disturbed, disturbed])).toEqual([disturbed, disturbed])
})

test('The ingress bench divides only contestants of one group, so that a group that was left out leaves no half of a ratio', () => {
  const rounds = groups.map((group) => new Map(group.map((name) => [name, one])))
  expect(targetRatios(rounds).filter(({ median }) => median !== 1)).toEqual([])
  expect(targetRows(rounds).filter(({ median }) => Number.isNaN(median))).toEqual([])
})
