import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { expect, onTestFinished, test } from 'vitest'

test('the launcher finds its own folder, whatever CDPATH says', () => {
  const above = dirname(projectRoot)
  const options = { cwd: above, env: { ...process.env, CDPATH: above }, encoding: 'utf8' } as const
  expect(execFileSync('sh', [join(basename(projectRoot), 'weir'), 'help'], options)).toContain('Usage: weir')
})

test('the launcher takes tests and benches to the scripts of the repository, and says what they take', () => {
  const weir = (...words: string[]) => spawnSync(join(projectRoot, 'weir'), words, { encoding: 'utf8' })
  expect(weir('bench').stdout.split('\n')).toContain('decide')
  expect(weir('test', '--help').stdout).toContain('Usage: weir test [TIER...]')
  expect(weir('test', 'nothing')).toMatchObject({ status: 2, stderr: expect.stringContaining('no test tier nothing') })
  expect(weir('bench', 'nothing')).toMatchObject({ status: 2, stderr: expect.stringContaining('no bench nothing') })
  expect(weir('bench', '--rounds', '0')).toMatchObject({ status: 2, stderr: expect.stringContaining('1 to 100') })
})

test.each([
  [['decide', '--rate', '5'], 'Only the bench pipeline takes --rate'],
  [['decide', '--rows', '5'], 'Only the bench usage takes --rows'],
  [['usage', '--rows', 'x'], '--rows takes a whole number'],
  [['pipeline', '--rate', '200', 'decide'], 'bench takes one name'],
  [['pipeline', '--rate', '200', '0'], '--rate takes whole numbers from 1'],
  [['pipeline', '--partitions', '6,x'], '--partitions takes whole numbers from 1'],
  [['pipeline', '--tree', tmpdir()], 'is no checkout of Weir'],
])('weir bench %j ends before anything starts, and says why', (words, reason) => {
  const { status, stderr } = spawnSync(join(projectRoot, 'weir'), ['bench', ...words], { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(reason) })
})

test('The launcher keeps compiled code in .weir for the next run, unless the environment names another folder', () => {
  const root = mkdtempSync(join(tmpdir(), 'weir-launcher-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  copyFileSync(join(projectRoot, 'weir'), join(root, 'weir'))
  for (const name of ['node_modules', 'packages', 'infra', 'pnpm-lock.yaml'])
    symlinkSync(join(projectRoot, name), join(root, name))
  mkdirSync(join(root, '.weir'))
  for (const name of readdirSync(join(projectRoot, '.weir')).filter((one) => one.startsWith('tools')))
    symlinkSync(join(projectRoot, '.weir', name), join(root, '.weir', name))
  const { NODE_COMPILE_CACHE: _, ...env } = process.env
  const other = join(root, 'other')
  execFileSync('sh', [join(root, 'weir'), 'help'], { env: { ...env, NODE_COMPILE_CACHE: other } })
  expect([existsSync(other), existsSync(join(root, '.weir/compile-cache'))]).toEqual([true, false])
  execFileSync('sh', [join(root, 'weir'), 'help'], { env })
  expect(existsSync(join(root, '.weir', 'compile-cache'))).toBe(true)
})
