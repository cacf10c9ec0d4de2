import { resolve } from 'node:path'

/** The checkout's root: the programs, migrations and topics that the commands start and apply lie below it. */
export const projectRoot = resolve(import.meta.dirname, '../../..')

export const inProject = (...path: string[]): string => resolve(projectRoot, ...path)

/** What a command has of its surroundings; main.ts fills it in. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** For people; standard error, so that standard output stays for results. */
  readonly say: (line: string) => void
  /** The result of the command; standard output. */
  readonly print: (text: string) => void
  /** Aborted by SIGTERM, SIGINT, or the end of the npm that started us. */
  readonly signal: AbortSignal
}
