import { execFileSync, spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { expect, test } from 'vitest'

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
  [['pipeline', '--rate', '200', 'decide'], 'bench takes one name'],
  [['pipeline', '--rate', '200', '0'], '--rate takes whole numbers from 1'],
  [['pipeline', '--partitions', '6,x'], '--partitions takes whole numbers from 1'],
  [['pipeline', '--tree', tmpdir()], 'is no checkout of Weir'],
])('weir bench %j ends before anything starts, and says why', (words, reason) => {
  const { status, stderr } = spawnSync(join(projectRoot, 'weir'), ['bench', ...words], { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(reason) })
})
