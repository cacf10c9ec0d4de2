import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { verifySha256 } from './verify-sha256.ts'

let dir: string
let folder: string
const list = () => join(dir, 'list.sha256')
const line = (name: string, text: string) => `${createHash('sha256').update(text).digest('hex')}  ${name}\n`
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-sha256-'))
  folder = join(dir, 'fetched')
  mkdirSync(folder)
  writeFileSync(join(folder, 'a.jar'), 'a')
  writeFileSync(join(folder, 'b.jar'), 'b')
  writeFileSync(list(), line('a.jar', 'a') + line('b.jar', 'b'))
})
afterEach(() => rmSync(dir, { recursive: true }))

it('takes exactly the files of the list', async () => {
  await expect(verifySha256(folder, list())).resolves.toBeUndefined()
})

it('refuses by name a file that was changed, one too many and one too few', async () => {
  writeFileSync(join(folder, 'b.jar'), 'c')
  await expect(verifySha256(folder, list())).rejects.toThrow(/^b\.jar is not the file that .*list\.sha256 pins/)
  writeFileSync(join(folder, 'b.jar'), 'b')
  writeFileSync(join(folder, 'c.jar'), 'c')
  await expect(verifySha256(folder, list())).rejects.toThrow(/^c\.jar was fetched/)
  rmSync(join(folder, 'c.jar'))
  rmSync(join(folder, 'a.jar'))
  await expect(verifySha256(folder, list())).rejects.toThrow(/^a\.jar, which .* names, was not fetched/)
})
