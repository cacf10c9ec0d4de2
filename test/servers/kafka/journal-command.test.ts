import { writeFileSync } from 'node:fs'
import { createDirectory } from '@weir/journal/directory/directory.ts'
import { segmentPath } from '@weir/journal/format/segment-files.ts'
import { openWriter } from '@weir/journal/write/open-writer.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { expect, inject, test } from 'vitest'
import { folderForTest } from '../../support/opened.ts'
import { countedNs, journalParts } from '../../support/servers/journal-records.ts'
import { createTopic, kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readTopic } from '../../support/servers/read-topic.ts'
import { runWeir } from '../../support/weir-up.ts'

const mebibyte = 1024 * 1024

/** A journal that a process left when it died: records `from` to `to`. */
async function leaveDead(base: string, topic: string, from: number, to: number): Promise<string> {
  const topics = [{ name: topic, partitions: 3 }]
  const directory = await createDirectory(base, topics)
  const log = createLogger('test', 'silent')
  const writer = await openWriter(directory, { topics, maxBytes: 64 * mebibyte, log })
  for (let n = from; n < to; n += 1) writer.log(0).append(`k${n % 20}`, `{"n":${n}`)
  await writer.close()
  await directory.release()
  return directory.path
}

test('weir journal: ls shows what dead processes left, verify reads it, drain brings all of it to Kafka and leaves nothing', async () => {
  const options = kafkaOptions(inject('kafkaBrokers'))
  const topic = await createTopic(options, 3)
  const base = await folderForTest('journal')
  await leaveDead(base, topic, 0, 1_000)
  await leaveDead(base, topic, 1_000, 3_000)
  const weir = (...args: string[]) =>
    runWeir(['journal', ...args, '--dir', base], { WEIR_KAFKA_BROKERS: inject('kafkaBrokers') })

  const listed = await weir('ls', '--json')
  expect(JSON.parse(listed.stdout)).toMatchObject([{ state: 'dead' }, { state: 'dead' }])
  expect((await weir('ls')).stdout).toMatch(/^JOURNAL +WAITING +OLDEST +BYTES +STATE\n.*\b(1,000|2,000) .*\bdead\n/)
  expect((await weir('verify')).code).toBe(0)

  const drained = await weir('drain', '--json')
  expect(drained).toMatchObject({ code: 0 })
  expect(JSON.parse(drained.stdout)).toEqual({ sent: 2, left: 0 })
  const records = await readTopic(options, topic, (read) => countedNs(journalParts(read)).length >= 3_000)
  expect(countedNs(journalParts(records))).toEqual(Array.from({ length: 3_000 }, (_, n) => n))
  expect(JSON.parse((await weir('ls', '--json')).stdout)).toEqual([])
  expect((await weir('drain')).stderr).toContain('no journal of a dead process waits')
})

test('weir journal verify ends with 1 and says where a journal is damaged; drain, without Kafka, keeps everything', async () => {
  const base = await folderForTest('journal')
  const path = await leaveDead(base, 'nowhere', 0, 100)
  const damage = Buffer.alloc(100, 1)
  const fd = segmentPath(path, 1)
  writeFileSync(fd, damage, { flag: 'r+' })
  const weir = (...args: string[]) =>
    runWeir(['journal', ...args, '--dir', base], { WEIR_KAFKA_BROKERS: '127.0.0.1:1' })
  const verified = await weir('verify')
  expect(verified.code).toBe(1)
  expect(verified.stdout).toMatch(/cannot be read|are missing/)
  const before = JSON.parse((await weir('ls', '--json')).stdout)
  const drained = await weir('drain', '--wait', '2')
  expect(drained.code).toBe(1)
  expect(drained.stderr).toContain('still wait')
  const after = JSON.parse((await weir('ls', '--json')).stdout)
  const waiting = (reports: readonly { readonly waiting: number }[]) =>
    reports.reduce((sum, one) => sum + one.waiting, 0)
  expect(waiting(after)).toBe(waiting(before))
})
