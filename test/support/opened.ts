import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'

/** What the tests of a file share: it is closed behind them, the last one first. */
export async function forFile<T extends { close(): unknown }>(opened: T | Promise<T>): Promise<T> {
  const one = await opened
  afterAll(async () => void (await one.close()))
  return one
}

/** What a test opens: it is closed behind the test, the last one first. */
export async function forTest<T extends { close(): unknown }>(opened: T | Promise<T>): Promise<T> {
  const one = await opened
  onTestFinished(async () => void (await one.close()))
  return one
}

/** An empty folder that is removed behind the tests of a file. */
export async function folderForFile(name: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), `weir-test-${name}-`))
  afterAll(() => rm(dir, { recursive: true, force: true }))
  return dir
}

/** An empty folder that is removed behind a test. */
export async function folderForTest(name: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), `weir-test-${name}-`))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}
