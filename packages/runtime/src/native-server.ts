import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A program that must be on the PATH, and how to install it. */
export interface NeededProgram {
  readonly program: string
  /** The command that installs it on Debian, shown as it is. */
  readonly install: string
}

/** Everything needed to run one server in the foreground. */
export interface ServerPlan {
  readonly command: readonly [string, ...string[]]
  readonly env: Readonly<Record<string, string>>
  /** The working directory of the program. */
  readonly cwd: string
  /** The address for clients: a URL for Redis and ClickHouse, host:port for Kafka. */
  readonly address: string
  /** Only Kafka: the user with all rights, and the address that serves that user alone. */
  readonly login?: { readonly address: string; readonly username: string; readonly password: string }
  /** If given, the launcher itself listens at `address` while the server runs, and forwards connections. */
  readonly openRelay?: () => Promise<{ close(): unknown }>
  /** Whether the server answers as a client needs it. One attempt, 3 s at most; it never throws. */
  ready(): Promise<boolean>
}

/** The inputs of a server's plan. */
export interface PlanOptions {
  readonly dir: string
  readonly ports: readonly number[]
  readonly progress: (line: string) => void
}

/** A real server as it is run without Docker. The launcher and the tests start it through the same plan. */
export interface NativeServer {
  readonly name: 'redis' | 'kafka' | 'clickhouse'
  readonly needs: readonly NeededProgram[]
  /** The `docker run` line that gives the same server, and the variable that then points Weir at it. */
  readonly docker: { readonly command: string; readonly env: string }
  /** Number of ports that `plan` needs. */
  readonly portCount: number
  /**
   * Prepares the data directory (formatting, downloads, config files) and returns how to start. Running it again on the
   * same directory continues the data. `progress` gets one line per slow step.
   */
  plan(options: PlanOptions): Promise<ServerPlan>
}

function isOnPath(program: string, path: string): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Returns those of the programs that are in none of the folders of `path`, the value of the environment's PATH. */
export function missingPrograms(needs: readonly NeededProgram[], path = ''): NeededProgram[] {
  return needs.filter(({ program }) => !isOnPath(program, path))
}
