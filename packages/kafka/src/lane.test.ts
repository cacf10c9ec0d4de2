import { expect, test } from 'vitest'
import { batchBytesMax, batchRecordsMax, Lane } from './lane.ts'

function valuesOf(lane: Lane): unknown[] {
  return lane.take()?.messages.map((message) => message.value) ?? []
}

test('a batch that was taken never grows: a repeat sends the same records', () => {
  const lane = new Lane(0)
  lane.append('k', 'a', 2)
  expect(valuesOf(lane)).toEqual(['a'])
  lane.append('k', 'b', 2)
  expect(valuesOf(lane)).toEqual(['a'])
  lane.acknowledge()
  expect(valuesOf(lane)).toEqual(['b'])
})

test('records that wait behind a taken batch are gathered into one', () => {
  const lane = new Lane(0)
  lane.append('k', 'a', 2)
  lane.take()
  lane.append('k', 'b', 2)
  lane.append('k', 'c', 2)
  lane.acknowledge()
  expect(valuesOf(lane)).toEqual(['b', 'c'])
})

test('no batch is larger than Kafka takes, in records or in bytes', () => {
  const many = new Lane(0)
  for (let i = 0; i < batchRecordsMax + 1; i += 1) many.append('k', String(i), 1)
  expect(many.take()?.messages.length).toBe(batchRecordsMax)
  const large = new Lane(0)
  large.append('k', 'a', batchBytesMax - 1)
  large.append('k', 'b', 2)
  expect(large.take()?.messages.length).toBe(1)
})

test('a lane is empty again once everything is acknowledged', () => {
  const lane = new Lane(3)
  lane.append('k', 'a', 2)
  lane.take()
  lane.acknowledge()
  expect(lane.first).toBeUndefined()
  expect(lane.nextSeq).toBe(1)
})
