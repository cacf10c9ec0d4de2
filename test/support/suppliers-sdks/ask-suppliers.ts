import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fetchSdks } from './fetch-sdks.ts'

/** One call of an SDK. */
export interface Asking {
  readonly name: string
  /** Such as `chat.completions.create`; `.stream` is read to its end by the SDK's own helper. */
  readonly call: string
  readonly args: object
  /** A message of so many bytes. */
  readonly fill?: number
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
}

/** How it went, as the SDK tells a program. */
export interface Said {
  readonly name: string
  readonly result?: object
  readonly error?: { readonly types: readonly string[]; readonly status: number; readonly message: string }
  /** Each response, at the moment in ms at which it was asked for. The hash is that of a body that was read whole. */
  readonly exchanges: readonly {
    readonly at: number
    readonly status: number
    readonly retryAfter: string | null
    readonly decision: string | null
    readonly sha256?: string
  }[]
}

/** Their folder. */
export const sdks = await fetchSdks()

/** Runs one of the programs here, which know of Weir no more than `environment` says, and reads its lines. */
export async function runClient(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const command = program.endsWith('.py') ? 'python3' : process.execPath
  const env = { PATH: process.env.PATH, SDKS: sdks, PYTHONPATH: join(sdks, 'python'), ...environment }
  const options = { env, timeout: 110_000, maxBuffer: 64 * 1_048_576 }
  const { stdout } = await promisify(execFile)(command, [join(import.meta.dirname, program), ...args], options)
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}
