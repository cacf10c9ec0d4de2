import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const project = resolve(import.meta.dirname, '../../..')
const client = join(project, 'packages/client')
const run = promisify(execFile)
/** Building and packing takes 3 s here. */
const packDeadlineMs = 60_000

/**
 * A folder in which `@weir/client` is installed as if from a registry: packed, unpacked, and nothing of the workspace
 * around it.
 */
export interface InstalledClient {
  readonly dir: string
  close(): Promise<void>
}

/** Packs the client as it would be published, and installs it with copies of the examples beside it. */
export async function installClient(): Promise<InstalledClient> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-client-'))
  const modules = join(dir, 'node_modules')
  const installed = join(modules, '@weir/client')
  await mkdir(installed, { recursive: true })
  // The pnpm that installed the workspace.
  const pnpm = join(project, '.weir/tools/node_modules/pnpm/bin/pnpm.cjs')
  await run(process.execPath, [pnpm, 'pack', '--out', join(dir, 'client.tgz')], {
    cwd: client,
    timeout: packDeadlineMs,
  })
  await run('tar', ['-xzf', join(dir, 'client.tgz'), '-C', installed, '--strip-components=1'])
  for (const name of ['undici', 'express', 'fastify', '@types/express']) {
    await mkdir(join(modules, name, '..'), { recursive: true })
    await symlink(join(client, 'node_modules', name), join(modules, name))
  }
  await symlink(join(project, 'node_modules/@types/node'), join(modules, '@types/node'))
  await cp(join(installed, 'examples'), dir, { recursive: true })
  return { dir, close: () => rm(dir, { recursive: true, force: true }) }
}
