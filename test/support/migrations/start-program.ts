import { mkdtemp, open, readFile, rm, symlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { onTestFinished } from 'vitest'

const project = resolve(import.meta.dirname, '../../..')

/** A busy machine may take many times the half second that it usually takes. */
const startDeadlineMs = 30_000

/** Below docs/migrations. */
export const guideFile = (name: string): string => join(project, 'docs/migrations', name)

function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => socket.end(() => done(true)))
    socket.once('error', () => done(false))
  })
}

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
  const logFile = join(dir, 'program.log')
  const log = await open(logFile, 'a')
  const child = spawnBound([process.execPath, '--preserve-symlinks-main', file], {
    stdio: ['ignore', log.fd, log.fd],
    env: { PATH: process.env.PATH, PORT: String(port), ...environment },
  })
  await log.close()
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    await rm(dir, { recursive: true, force: true })
  })
  const alive = () => child.exitCode === null && child.signalCode === null
  const up = await waitUntil(async () => !alive() || accepts(port), { deadlineMs: startDeadlineMs })
  if (up !== true || !alive()) {
    throw new Error(`docs/migrations/${name} did not start:\n${await readFile(logFile, 'utf8')}`)
  }
  return `http://127.0.0.1:${port}`
}
