import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A program that must be on the PATH, and how a person gets it. */
export interface NeededProgram {
  readonly program: string
  /** The command that installs it on Debian, shown as it is. */
  readonly install: string
}

/** Everything needed to run one server in the foreground. */
export interface ServerPlan {
  readonly command: readonly [string, ...string[]]
  readonly env: Readonly<Record<string, string>>
  /** Where the program is started. */
  readonly cwd: string
  /** What clients are given: a URL for Redis and ClickHouse, host:port for Kafka. */
  readonly address: string
  /** Kafka's: the user who may do everything, and an address where no other caller is served. */
  readonly login?: { readonly address: string; readonly username: string; readonly password: string }
  /** Where it is given, the launcher itself listens at `address` while the server runs, and passes connections on. */
  readonly openRelay?: () => Promise<{ close(): unknown }>
  /** One attempt, 3 s at most, never throws: does it answer as a client would need it to? */
  ready(): Promise<boolean>
}

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
  /** How many ports `plan` wants. */
  readonly portCount: number
  /**
   * Prepares the data directory (formatting, downloads, config files) and says how to start. Running it again on the
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
