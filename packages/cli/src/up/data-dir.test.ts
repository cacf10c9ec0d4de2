import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { openDataDir } from './data-dir.ts'

let parent: string
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'weir-data-dir-'))
})
afterEach(() => rmSync(parent, { recursive: true }))

const mode = (path: string) => statSync(path).mode & 0o777

it('closes the data directory to other users, a new one and one that was open before', () => {
  const [fresh, older] = [join(parent, 'fresh'), join(parent, 'older')]
  mkdirSync(older)
  chmodSync(older, 0o755)
  for (const dir of [fresh, older]) {
    openDataDir(dir).release()
    expect(mode(dir)).toBe(0o700)
  }
})

it('does not shut other users out of a directory that all of them share', () => {
  chmodSync(parent, 0o1777)
  expect(() => openDataDir(parent)).toThrow('all users share')
  expect(mode(parent)).toBe(0o777)
})

it('takes no directory of another user, whose secrets it would use', () => {
  const self = vi.spyOn(process, 'getuid').mockReturnValue(statSync(parent).uid + 1)
  onTestFinished(() => self.mockRestore())
  expect(() => openDataDir(parent)).toThrow(`belongs to user ${statSync(parent).uid}`)
})
