import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readdirSync } from 'node:fs'
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
const services = ['ingress', 'metering', 'alerting', 'console', 'cli'] as const

/** The images of Weir, which this builds. */
export const weirImages = services.map((service) => `weir-${service}`)

/** A Docker engine with images that stand in for the vendors', and Weir's own. */
export interface Engine {
  readonly env: NodeJS.ProcessEnv
  /** Runs a command of Docker, and resolves to its output. */
  docker(...args: string[]): Promise<string>
  stop(): Promise<void>
}

const run = promisify(execFile)
/** A build of one image fetches some hundred packages. */
const buildDeadlineMs = 15 * 60_000

/** Starts an engine of its own, unless DOCKER_HOST names one. */
async function startDaemon(): Promise<{ host: string; stop: () => Promise<void> }> {
  const { DOCKER_HOST } = process.env
  if (DOCKER_HOST !== undefined) return { host: DOCKER_HOST, stop: async () => {} }
  mkdirSync(folder, { recursive: true })
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
    run(docker, ['--host', host, 'info']).then(
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

/** What npm needs to know on this machine, as secrets of the build. */
function buildSecrets(): string[] {
  const files = { npmrc: join(homedir(), '.npmrc'), ca: process.env.NODE_EXTRA_CA_CERTS ?? '' }
  return Object.entries(files).flatMap(([id, src]) => (existsSync(src) ? ['--secret', `id=${id},src=${src}`] : []))
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

/** Starts the engine and makes all images. The first time takes a quarter of an hour, and later ones a minute. */
export async function openEngine(): Promise<Engine> {
  const daemon = await startDaemon()
  // Debian's client builds by itself; newer ones need a plugin for it.
  const PATH = `${clients}:${process.env.PATH}`
  const base = { ...process.env, PATH, DOCKER_HOST: daemon.host, DOCKER_BUILDKIT: '1' }
  const options = { cwd: root, env: base, timeout: buildDeadlineMs, maxBuffer: 64 * 1024 ** 2 }
  await run(join(root, 'infra/docker/stand-ins/build.sh'), [join(folder, 'stand-ins')], options)
  const env = { ...base, DOCKER_CONFIG: await clientConfig() }
  const call = async (...args: string[]) => {
    const { stdout } = await run(docker, args, { ...options, env })
    return stdout
  }
  const file = 'infra/docker/service.Dockerfile'
  for (const service of services) {
    const args = ['--file', file, '--build-arg', `SERVICE=${service}`, '--tag', `weir-${service}`]
    await call('build', '--network', 'host', ...buildSecrets(), ...args, '.')
  }
  return { env, docker: call, stop: daemon.stop }
}
