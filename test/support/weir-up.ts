import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import type { ReadyLine } from '@weir/cli/up/ready-line.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { hear } from './hear.ts'
import { endOfFile, keepLog } from './servers/server-logs.ts'

/** A start takes 7 s here; a machine that also runs other tests may need many times that. */
const startDeadlineMs = 120_000

export type RunningWeir = Awaited<ReturnType<typeof weirUp>>

/**
 * `./weir …` as a person would call it, which runs `packages/cli/src/main.ts`; resolves when that has ended. `input` is
 * what it reads.
 */
export async function runWeir(args: readonly string[], env: NodeJS.ProcessEnv = {}, input = '') {
  const child = spawnBound([join(projectRoot, 'weir'), ...args], { env: { ...process.env, ...env }, stdio: 'pipe' })
  const output = hear(child)
  child.stdin?.end(input)
  const code = await output.ended
  return { code, stdout: output.stdout, stderr: output.stderr }
}

/**
 * Everything, on free ports and an empty data directory, through the same launcher that people use: this checkout's, or
 * another one's, and on the data of an earlier start if `dir` names them.
 */
export async function weirUp(
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
  at: { readonly checkout?: string; readonly dir?: string } = {},
) {
  // A path as people have them: with a blank, a comma and an umlaut.
  const dir = at.dir ?? (await mkdtemp(join(tmpdir(), 'weir up, größer-')))
  const command = [join(at.checkout ?? projectRoot, 'weir'), 'up', '--json', '--ports', 'auto', '--data', dir, ...args]
  // As npm does it: the first `node` on the PATH is then a script, which must not stand between a signal and the
  // launcher.
  const path = `${join(projectRoot, 'node_modules', '.bin')}:${process.env.PATH}`
  const child = spawnBound(command as [string, ...string[]], {
    env: { ...process.env, PATH: path, ...env },
    stdio: 'pipe',
  })
  const output = hear(child)
  const logs = () => (existsSync(join(dir, 'logs')) ? readdirSync(join(dir, 'logs')) : [])
  const keepEnd = keepLog('weir-up', () =>
    [...logs().map((name) => endOfFile(join(dir, 'logs', name))), output.stderr].join('\n'),
  )
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  const alive = () => child.exitCode === null && child.signalCode === null
  const ready = await waitUntil(() => output.stdout.includes('\n') || !alive(), { deadlineMs: startDeadlineMs })
  if (ready !== true || !alive()) throw new Error(`weir up did not come up:\n${output.stderr}`)
  const line: ReadyLine = JSON.parse(output.stdout)
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    return ended
  }
  return {
    line,
    dir,
    /** The state file as it is now: pids change when a part was started again. */
    state: async () => JSON.parse(await readFile(line.state, 'utf8')),
    /** What it said on standard error so far. */
    said: () => output.stderr,
    /** Sends a signal to the launcher and waits until it has ended; its exit code. */
    end,
    /** Processes that name the data directory in their command line or environment. */
    processes: () => processesOf(dir),
    /** Ends it if it still runs, and removes its data. */
    async close() {
      if (alive()) await end('SIGTERM')
      keepEnd()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

const readProc = (pid: string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return '' // It has ended meanwhile.
  }
}

/** By /proc, because a service names its data directory in its environment only. This process is not among them. */
function processesOf(dir: string): string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .map((pid) => ({ pid, command: readProc(pid, 'cmdline'), environment: readProc(pid, 'environ') }))
    .filter(({ command, environment }) => command.includes(dir) || environment.includes(dir))
    .map(({ pid, command }) => `${pid} ${command}`)
}
