import { getHeapSpaceStatistics } from 'node:v8'
import { expect, it } from 'vitest'
import { releaseStartMemory } from './release-memory.ts'

const newSpaceMb = () =>
  (getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0) / 2 ** 20

it('The space for new objects, which loading made large, is small again', async () => {
  let loaded: unknown[] = Array.from({ length: 600_000 }, (_, at) => ({ at }))
  expect(newSpaceMb()).toBeGreaterThan(8)
  loaded = []
  await releaseStartMemory()
  expect([loaded.length, newSpaceMb() <= 4]).toEqual([0, true])
})
