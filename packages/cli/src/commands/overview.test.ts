import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { noProgress } from '../terminal/progress.ts'
import { showOverview } from './overview.ts'

test('weir alone says that nothing runs, that it is stopped, or that it starts, and what to try next', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'weir-test-overview-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const say = async (state?: object) => {
    if (state !== undefined) writeFileSync(join(dir, 'state.json'), JSON.stringify(state))
    const printed: string[] = []
    const print = (text: string) => void printed.push(text)
    const context = {
      environment: {},
      cwd: '/',
      print,
      report: print,
      progress: noProgress,
      signal: AbortSignal.any([]),
    }
    expect(await showOverview(dir, context)).toBe(true)
    return printed.join('\n')
  }
  expect(await say()).toMatch(/^Weir does not run here, and has never run here\.\n\nNext:\n {2}\.\/weir up /)
  expect(await say({ ready: false, launcher: process.pid })).toMatch(/^Weir is starting \(process \d+\)\./)
  const ended = { ready: true, launcher: 2 ** 22 + 1, console: 'http://127.0.0.1:1', adminToken: 'x' }
  expect(await say(ended)).toBe(
    `Weir is stopped. Its data is in ${dir}.\n\nNext:\n  ./weir up      Start everything on this machine\n  ./weir --help  every command`,
  )
})
