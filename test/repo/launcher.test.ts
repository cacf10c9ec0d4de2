import { execFileSync } from 'node:child_process'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { projectRoot } from '../support/weir-up.ts'

test('the launcher finds its own folder, whatever CDPATH says', () => {
  const above = dirname(projectRoot)
  const options = { cwd: above, env: { ...process.env, CDPATH: above }, encoding: 'utf8' } as const
  expect(execFileSync('sh', [join(basename(projectRoot), 'weir'), 'help'], options)).toContain('Usage: weir')
})
