import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TemporaryBase } from '../testing/temporary-journal.ts'
import { refuseEphemeral } from './refuse-ephemeral.ts'

const types = { tmpfs: 0x01021994, overlay: 0x794c7630, ramfs: 0x858458f6 }

for (const [name, type] of Object.entries(types)) {
  test(`a journal on ${name} is refused by name, unless that is accepted`, async () => {
    await using base = new TemporaryBase()
    expect(() => refuseEphemeral(base.path, false, () => type)).toThrow(
      expect.objectContaining({ code: 'JOURNAL_UNUSABLE', message: expect.stringContaining(`is on ${name}`) }),
    )
    expect(() => refuseEphemeral(base.path, true, () => type)).not.toThrow()
  })
}

test('a disk is taken, and made a directory on', async () => {
  await using base = new TemporaryBase()
  const path = join(base.path, 'deep', 'down')
  expect(() => refuseEphemeral(path, false, () => 0xef53)).not.toThrow()
  const file = join(base.path, 'a-file')
  writeFileSync(file, '')
  expect(() => refuseEphemeral(join(file, 'journal'), false)).toThrow(
    expect.objectContaining({ code: 'JOURNAL_UNUSABLE' }),
  )
})
