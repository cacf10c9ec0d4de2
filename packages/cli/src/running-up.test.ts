import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { dataDirOfUp, rememberUp } from './running-up.ts'

it('commands ask the weir up that runs: the usual one first, else the last one that was named', () => {
  const root = mkdtempSync(join(tmpdir(), 'weir-up-'))
  const [usual, other, file] = [join(root, 'usual'), join(root, 'other'), join(root, 'last', 'up')]
  const runAs = (dir: string, launcher: number) => {
    mkdirSync(dir, { recursive: true })
    writeFileSync(join(dir, 'state.json'), JSON.stringify({ launcher }))
  }
  const dead = 2 ** 22 + 1
  expect(dataDirOfUp(usual, file)).toBe(usual)
  rememberUp(other, file)
  runAs(other, process.pid)
  expect(dataDirOfUp(usual, file)).toBe(other)
  runAs(usual, process.pid)
  expect(dataDirOfUp(usual, file)).toBe(usual)
  runAs(usual, dead)
  runAs(other, dead)
  expect(dataDirOfUp(usual, file)).toBe(usual)
})
