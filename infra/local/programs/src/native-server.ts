import type { FetchOptions, Program } from './program.ts'

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
  /** Where programs are looked for: PATH, JAVA_HOME, and how they are fetched. */
  readonly environment: FetchOptions['environment']
}

/** A real server as it is run without Docker. The launcher and the tests start it through the same plan. */
export interface NativeServer {
  readonly name: 'redis' | 'kafka' | 'clickhouse'
  /** What `plan` needs: found before anything is prepared. */
  readonly needs: readonly Program[]
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
