import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { waitUntil } from '@weir/runtime/wait-until.ts'

const root = resolve(import.meta.dirname, '../../..')
/** Images, volumes and what the stand-ins are made of: some 5 GB. It must be on a disk, or the journal is refused. */
const folder = process.env.WEIR_TEST_DOCKER_DIR ?? join(root, '.weir/docker-engine')
/** Debian's packages, where no other client is meant. */
const clients = '/usr/bin'
const docker = existsSync(join(clients, 'docker')) ? join(clients, 'docker') : 'docker'

/**
 * What the build is told as a secret beside the settings of this machine, and what a file that was put into the tree
 * says: no layer of an image may have it.
 */
export const buildSecret = 'weir-test-secret-of-the-build'

/** A Docker engine with images that stand in for the vendors', and Weir's own. */
interface Engine {
  /** How a terminal reaches it. */
  readonly environment: Record<string, string>
  /** Removes the images, unless they are to be looked at (`WEIR_TEST_KEEP`), and ends it. */
  close(): Promise<void>
}

type Environment = Readonly<Record<string, string>>

const run = promisify(execFile)
/** A build fetches some hundred packages. */
const buildDeadlineMs = 30 * 60_000

/** Runs a command of Docker in the repository's root, and resolves to its output. */
export async function runDocker(environment: Environment, args: readonly string[]): Promise<string> {
  const env = { ...process.env, ...environment }
  const { stdout } = await run(docker, args, { cwd: root, env, timeout: buildDeadlineMs, maxBuffer: 64 * 1024 ** 2 })
  return stdout
}

/** Starts an engine of its own, unless DOCKER_HOST names one. */
async function startDaemon(): Promise<{ host: string; stop: () => Promise<void> }> {
  const { DOCKER_HOST } = process.env
  if (DOCKER_HOST !== undefined) return { host: DOCKER_HOST, stop: async () => {} }
  const host = `unix://${folder}/docker.sock`
  const args = ['--data-root', join(folder, 'root'), '--exec-root', join(folder, 'exec'), '--host', host]
  const log = openSync(join(folder, 'dockerd.log'), 'a')
  const daemon = spawn('dockerd', [...args, '--pidfile', join(folder, 'pid')], { stdio: ['ignore', log, log] })
  const failed = new Promise<never>((_, reject) => {
    const wanted = `dockerd does not run (${folder}/dockerd.log): apt-get install -y docker.io, as root`
    daemon.once('error', (cause) => reject(new Error(wanted, { cause })))
    daemon.once('exit', () => reject(new Error(wanted)))
  })
  failed.catch(() => {})
  const answers = () =>
    runDocker({ DOCKER_HOST: host }, ['info']).then(
      () => true,
      () => false,
    )
  await Promise.race([waitUntil(answers, { deadlineMs: 60_000 }), failed])
  const ended = new Promise((done) => daemon.once('exit', done))
  return {
    host,
    stop: async () => {
      daemon.kill('SIGTERM')
      await ended
    },
  }
}

/** npm's settings of this machine and the secret, for the build alone; NODE_EXTRA_CA_CERTS may be set already. */
function buildSettings(file: string): Environment {
  const own = join(homedir(), '.npmrc')
  const settings = `${existsSync(own) ? readFileSync(own, 'utf8') : ''}\n//npm.invalid/:_authToken=${buildSecret}\n`
  writeFileSync(file, settings, { mode: 0o600 })
  return { NPM_CONFIG_USERCONFIG: file }
}

/** Compose as a part of Docker's client: that of the machine, or the one that the stand-ins brought. */
async function clientConfig(): Promise<string> {
  const config = join(folder, 'client')
  mkdirSync(join(config, 'cli-plugins'), { recursive: true })
  const found = existsSync(join(folder, 'stand-ins/compose'))
    ? readdirSync(join(folder, 'stand-ins/compose'), { recursive: true, encoding: 'utf8' })
    : []
  const compose = found.find((path) => path.endsWith('cli-plugins/docker-compose'))
  if (compose !== undefined) {
    await run('ln', ['-sfn', join(folder, 'stand-ins/compose', compose), join(config, 'cli-plugins/docker-compose')])
  }
  return config
}

/** Nobody may take them for the vendors' own. Weir's are made of one of them. */
async function removeStandIns(environment: Environment): Promise<void> {
  const ids = await runDocker(environment, ['image', 'ls', '--quiet', '--filter', 'label=weir.stand-in=true'])
  const unique = [...new Set(ids.split('\n').filter((id) => id !== ''))]
  if (unique.length > 0) await runDocker(environment, ['image', 'rm', '--force', ...unique])
}

/** Makes all images, the first time in a quarter of an hour. Resolves to what a terminal needs. */
async function makeImages(host: string): Promise<Record<string, string>> {
  // Debian's client builds by itself; newer ones need a plugin for it.
  const base = { PATH: `${clients}:${process.env.PATH}`, DOCKER_HOST: host, DOCKER_BUILDKIT: '1' }
  const options = { cwd: root, env: { ...process.env, ...base }, timeout: buildDeadlineMs, maxBuffer: 64 * 1024 ** 2 }
  await run(join(root, 'infra/docker/stand-ins/build.sh'), [join(folder, 'stand-ins')], options)
  const environment = { ...base, DOCKER_CONFIG: await clientConfig() }
  // Compose asks for them before it does anything.
  const unused = { WEIR_ADMIN_TOKEN: 'unused', WEIR_DEMO_WEBHOOK_SECRET: 'unused' }
  const settings = join(folder, 'npmrc')
  const build = { ...environment, ...buildSettings(settings), ...unused }
  const own = join(root, 'own.override.yml')
  writeFileSync(own, `# ${buildSecret}`)
  await runDocker(build, ['compose', 'build', '--quiet']).finally(() => [settings, own].map((file) => rmSync(file)))
  return environment
}

/** Starts the engine, with all images. */
export async function openEngine(): Promise<Engine> {
  mkdirSync(folder, { recursive: true })
  const daemon = await startDaemon()
  try {
    const environment = await makeImages(daemon.host)
    return {
      environment,
      close: async () => {
        if (!process.env.WEIR_TEST_KEEP) await removeStandIns(environment)
        await daemon.stop()
      },
    }
  } catch (error) {
    await daemon.stop()
    throw error
  }
}
