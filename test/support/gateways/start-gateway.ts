import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePorts } from '@weir/runtime/ports.ts'
import { accepts, startProcess } from '../start-process.ts'

/** A gateway in front of a plain upstream, asking Weir by the snippet of docs/integrations. */
export type Gateway = Awaited<ReturnType<typeof startGateway>>

/** What a gateway stands between. Both are origins: `http://127.0.0.1:PORT`. */
export interface GatewayOptions {
  readonly weirApi: string
  readonly upstream: string
  /** What happens to requests while Weir is away: refused, as the snippets have it, or served. */
  readonly whenAway?: 'closed' | 'open'
  /** Of nginx: it refuses the addresses of its list by itself. */
  readonly refusesBlocked?: boolean
}

interface GatewayPlan {
  /** By name, written into the gateway's own folder. */
  readonly files: Readonly<Record<string, string>>
  /** What ends it with all of its processes; SIGKILL for a single one. */
  readonly endsBy?: 'SIGTERM'
  readonly command: (dir: string) => readonly [string, ...string[]]
}

/** A file of docs/integrations with some of its text replaced. Each text must be there exactly once. */
export async function snippet(path: string, replacements: readonly (readonly [string, string])[]): Promise<string> {
  let text = await readFile(resolve(import.meta.dirname, '../../../docs/integrations', path), 'utf8')
  for (const [old, next] of replacements) {
    if (text.split(old).length !== 2) throw new Error(`${path} must have ${JSON.stringify(old)} once`)
    text = text.replace(old, () => next)
  }
  return text
}

/** `host:port` of an origin. */
export const hostOf = (origin: string): string => new URL(origin).host

/**
 * Starts the program in a folder of its own and waits until it accepts connections on the port that `planOf` was given.
 */
export async function startGateway(planOf: (port: number) => Promise<GatewayPlan>) {
  const [port = 0] = await freePorts(1)
  const { files, command, endsBy = 'SIGKILL' } = await planOf(port)
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-gateway-'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text)
  const program = await startProcess(command(dir), {
    name: command(dir).join(' '),
    logFile: join(dir, 'gateway.log'),
    env: { ...process.env, HOME: dir, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir },
    cwd: dir,
    ready: () => accepts(port),
    deadlineMs: 30_000,
  })
  return {
    /** The gateway's own folder, with its files. */
    dir,
    url: `http://127.0.0.1:${port}`,
    pid: program.pid,
    /** Ends it and removes its folder. */
    async close() {
      await program.end(endsBy)
      await rm(dir, { recursive: true, force: true })
    },
  }
}
