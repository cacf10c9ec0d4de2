import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { FetchOptions, Tell } from './program.ts'
import { toolsFolder } from './tool.ts'

const root = resolve(import.meta.dirname, '../../../..')
const logFile = resolve(root, '.weir/install.log')

/** `run`: what services, command line and demo import. `all`: what tests, benches and documents need too. */
export type Level = 'run' | 'all'

const filters: Readonly<Record<Level, readonly string[]>> = {
  run: [
    '--prod',
    ...['weir', '@weir/cli...', './services/*...', './infra/local/demo'].flatMap((one) => ['--filter', one]),
  ],
  all: [],
}

/** What is left of pnpm's log lines for this. Sizes are in bytes. */
interface LogLine {
  readonly name?: string
  readonly level?: string
  readonly status?: string
  readonly packageId?: string
  readonly size?: number
  readonly downloaded?: number
  readonly err?: { readonly message: string }
  readonly message?: string
  readonly error?: { readonly code?: string; readonly message?: string }
}

/** The one package that is worth a line of its own, and all others. */
const labelOf = (packageId: string) => (packageId.includes('chdb/lib') ? 'ClickHouse' : 'libraries')

/** Adds up what pnpm says of single packages: of those above 5 MB while they come, of others when they are there. */
class Packages {
  readonly #tell: Tell
  readonly #byId = new Map<string, { size: number; downloaded: number }>()

  constructor(tell: Tell) {
    this.#tell = tell
  }

  read({ name, status, packageId = '', size = 0, downloaded = 0 }: LogLine): void {
    if (name === 'pnpm:fetching-progress' && status === 'started') this.#byId.set(packageId, { size, downloaded: 0 })
    const known = this.#byId.get(packageId)
    if (known === undefined) return
    if (status === 'in_progress') known.downloaded = downloaded
    if (name === 'pnpm:progress' && status === 'fetched') known.downloaded = known.size
    const label = labelOf(packageId)
    const alike = [...this.#byId].flatMap(([id, one]) => (labelOf(id) === label ? [one] : []))
    const sum = (what: 'size' | 'downloaded') => alike.reduce((all, one) => all + one[what], 0)
    this.#tell(label, sum('downloaded'), sum('size'))
  }
}

/** While packages come, pnpm says something every second. Where it trusts no certificate of the registry, it hangs. */
const silenceMax = 120_000

/**
 * Has pnpm install what its lock file pins by hash. Its store is in the checkout, unless npm's settings name one.
 *
 * @param silenceMs given by tests
 */
export async function installPackages(
  level: Level,
  { environment, tell }: FetchOptions,
  silenceMs = silenceMax,
): Promise<void> {
  const store = environment.npm_config_store_dir ?? resolve(root, '.weir/store')
  const pnpm = resolve(toolsFolder, 'node_modules/pnpm/bin/pnpm.cjs')
  const args = [pnpm, 'install', '--frozen-lockfile', '--reporter=ndjson', '--store-dir', store]
  // Two more tries, after 2 and 15 s: pnpm's own minute is long for a person who looks on.
  const patience = ['--fetch-retry-mintimeout=2000', '--fetch-retry-maxtimeout=15000']
  const child = spawn(process.execPath, [...args, ...patience, ...filters[level]], {
    cwd: root,
    env: { ...environment, CI: '1' } as NodeJS.ProcessEnv, // asks nothing
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log = createWriteStream(logFile)
  const packages = new Packages(tell)
  const problems: string[] = []
  let retried = ''
  const giveUp = () => {
    const advice = 'A proxy, a CA (NODE_EXTRA_CA_CERTS) and a mirror are those of npm'
    problems.push(`pnpm said nothing for ${silenceMs / 1_000} s. ${advice}`)
    child.kill('SIGKILL')
  }
  const silence = setTimeout(giveUp, silenceMs)
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      log.write(`${line}\n`)
      silence.refresh()
      if (!line.startsWith('{')) return
      const said: LogLine = JSON.parse(line)
      packages.read(said)
      if (said.level === 'error') problems.push(said.err?.message ?? said.message ?? line)
      // pnpm goes on without a package that another names as optional, also when its hash is wrong.
      if (said.name === 'pnpm:package-requester' && said.level === 'warn') problems.push(`${said.message} ${retried}`)
      if (said.name === 'pnpm:request-retry') retried = said.error?.message ?? said.error?.code ?? ''
    })
  }
  const code = await new Promise((done, fail) => child.once('error', fail).once('close', done))
  clearTimeout(silence)
  log.end()
  if (code === 0 && problems.length === 0) return
  await rm(resolve(root, 'node_modules/.pnpm/lock.yaml'), { force: true }) // or pnpm would take it for complete next time
  throw new Error(['the installation failed:', ...problems.slice(-5), `all that pnpm said is in ${logFile}`].join('\n'))
}
