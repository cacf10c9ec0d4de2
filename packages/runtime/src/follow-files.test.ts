import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { followFiles } from './follow-files.ts'
import { waitUntil } from './wait-until.ts'

const dir = mkdtempSync(join(tmpdir(), 'weir-follow-'))
const at = (name: string) => join(dir, name)
const put = (version: string) => {
  mkdirSync(at(version))
  writeFileSync(at(`${version}/key`), version)
}
/** As Kubernetes replaces a volume's files: by another link, atomically. */
const linkTo = (version: string) => {
  symlinkSync(version, at('..link'))
  renameSync(at('..link'), at('..data'))
}

test('a change of any file is noticed: written, replaced, removed, come back, or by another link', async () => {
  onTestFinished(() => rmSync(dir, { recursive: true }))
  put('one')
  put('two')
  linkTo('one')
  symlinkSync('..data/key', at('key'))
  writeFileSync(at('plain'), 'a')
  let seen = 0
  onTestFinished(
    followFiles([at('key'), at('plain')], () => {
      seen += 1
    }),
  )
  const changes = [
    () => undefined, // the first look, for what changed since it was read
    () => writeFileSync(at('plain'), 'b'),
    () => linkTo('two'),
    () => {
      writeFileSync(at('new'), 'c')
      renameSync(at('new'), at('plain'))
    },
    () => rmSync(at('plain')),
    () => writeFileSync(at('plain'), 'c'),
  ]
  for (const change of changes) {
    const before = seen
    change()
    expect(await waitUntil(() => seen > before, { deadlineMs: 10_000 })).toBe(true)
  }
})
