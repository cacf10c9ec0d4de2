import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { KeptPart } from './kept-part.ts'

it('what a part is given goes before a variable of the environment, and before a file that this names', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-kept-part-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const program =
    'console.log(process.env.GIVEN, process.env.GIVEN_FILE, process.env.OTHER_FILE); setInterval(() => {}, 1e9)'
  const logFile = join(dir, 'log')
  const part = new KeptPart(
    {
      ...{ name: 'one', command: [process.execPath, '-e', program], env: { GIVEN: 'mine' }, cwd: dir },
      ...{ ready: async () => readFileSync(logFile, 'utf8') !== '', startDeadlineMs: 60_000 },
    },
    {
      ...{ logFile, report: () => undefined, onPid: () => undefined },
      environment: { PATH: process.env.PATH, GIVEN: 'yours', GIVEN_FILE: '/a', OTHER_FILE: '/b' },
    },
  )
  onTestFinished(() => part.stop())
  await part.start(new AbortController().signal)
  expect(readFileSync(logFile, 'utf8')).toBe('mine undefined /b\n')
})
