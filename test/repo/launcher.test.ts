import { execFileSync, spawnSync } from 'node:child_process'
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
