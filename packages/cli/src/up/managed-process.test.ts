import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ManagedProcess } from './managed-process.ts'

it('A variable of the definition takes precedence over the environment, and over a file that the environment names', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-managed-process-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const program =
    'console.log(process.env.GIVEN, process.env.GIVEN_FILE, process.env.OTHER_FILE); setInterval(() => {}, 1e9)'
  const logFile = join(dir, 'log')
  const managed = new ManagedProcess(
    {
      name: 'one',
      command: [process.execPath, '-e', program],
      env: { GIVEN: 'mine' },
      cwd: dir,
      ready: async () => readFileSync(logFile, 'utf8') !== '',
      startDeadlineMs: 60_000,
    },
    {
      logFile,
      report: () => undefined,
      onPid: () => undefined,
      environment: { PATH: process.env.PATH, GIVEN: 'yours', GIVEN_FILE: '/a', OTHER_FILE: '/b' },
    },
  )
  onTestFinished(() => managed.stop())
  await managed.start(new AbortController().signal)
  expect(readFileSync(logFile, 'utf8')).toBe('mine undefined /b\n')
})
