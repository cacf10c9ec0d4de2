import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { onTestFinished } from 'vitest'
import { accepts, startProcess } from '../start-process.ts'

const project = resolve(import.meta.dirname, '../../..')

/** Below docs/migrations. */
export const guideFile = (name: string): string => join(project, 'docs/migrations', name)

/**
 * Runs a program of docs/migrations as it is until the test ends, on a port of its own, beside the libraries as if they
 * had been installed there. Answers its origin.
 */
export async function startGuideProgram(name: string, environment: Readonly<Record<string, string>>): Promise<string> {
  const [port = 0] = await freePorts(1)
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-guide-'))
  await symlink(join(project, 'test/node_modules'), join(dir, 'node_modules'))
  const file = join(dir, 'program.mjs')
  await symlink(guideFile(name), file)
  const program = await startProcess([process.execPath, '--preserve-symlinks-main', file], {
    name: `docs/migrations/${name}`,
    logFile: join(dir, 'program.log'),
    env: { PATH: process.env.PATH, PORT: String(port), ...environment },
    ready: () => accepts(port),
    deadlineMs: 30_000,
  })
  onTestFinished(async () => {
    await program.end('SIGKILL')
    await rm(dir, { recursive: true, force: true })
  })
  return `http://127.0.0.1:${port}`
}
