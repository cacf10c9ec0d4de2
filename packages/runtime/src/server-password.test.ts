import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { serverPassword } from './server-password.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-password-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

it('makes a password once for each directory, readable by its owner only', () => {
  const first = serverPassword(dir)
  chmodSync(first.file, 0o644)
  expect(serverPassword(dir)).toEqual(first)
  expect(first.text).toMatch(/^[\w-]{32}$/)
  expect(statSync(first.file).mode & 0o777).toBe(0o600)
})

it('takes no empty or damaged file for a password', () => {
  writeFileSync(join(dir, 'password'), '\n')
  expect(() => serverPassword(dir)).toThrow('delete it')
})
