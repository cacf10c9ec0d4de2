import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { forTest } from '../../support/opened.ts'
import { startKafkaWith } from '../../support/servers/changed-kafka.ts'
import { newJournal, once, openMeteringStack, settled } from './open-metering.ts'

test('A broker that stores too little metadata for any block stops metering, which says what to set; then each record counts once', async () => {
  const stack = await forTest(openMeteringStack(() => startKafkaWith({ 'offset.metadata.max.bytes': 64 })))
  const journal = newJournal()
  await stack.send(journal.take(3))
  const metering = await stack.start()
  await metering.ended
  expect(metering.said()).toContain('set its offset.metadata.max.bytes to 256 or more')
  await stack.kafka.kill('SIGTERM')
  await appendFile(join(stack.kafka.dir, 'data', 'server.properties'), 'offset.metadata.max.bytes=256\n')
  await stack.kafka.restart()
  await stack.start()
  expect(await settled(stack, journal.subject, 3)).toEqual(once(3))
})
