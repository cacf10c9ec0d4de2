import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readDead, TemporaryBase } from '../testing/temporary-journal.ts'
import { quarantineRejected } from './quarantine.ts'

test('a refused record is kept whole in one file of its own, however often it is refused, and survives its journal', async () => {
  await using base = new TemporaryBase()
  const { writer, directory } = await base.open()
  writer.log(0).append('äcme', '{"n":1')
  await writer.log(0).writtenInTime()
  const [record] = readDead(directory.path)
  if (record === undefined) throw new Error('no record')
  const source = { base: base.path, journal: writer.journal, topicName: 'decisions' }
  const { path = '' } = quarantineRejected(record, source, 'too large') ?? {}
  expect(quarantineRejected(record, source, 'too large')?.path).toBe(path)
  expect(readdirSync(join(base.path, 'quarantine'))).toHaveLength(1)
  const kept = JSON.parse(readFileSync(path, 'utf8'))
  expect(kept).toMatchObject({ reason: 'too large', topic: 'decisions', seq: 0, journal: writer.journal })
  expect(Buffer.from(kept.value, 'base64')).toEqual(record.value)
  expect(Buffer.from(kept.key, 'base64').toString()).toBe('äcme')
})
