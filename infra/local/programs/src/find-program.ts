import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { fetchOnce } from './fetch-once.ts'
import { type FetchOptions, installLine, type Program } from './program.ts'

/** A program that is neither here nor could be fetched: what was found, and what to do. */
export class ProgramMissing extends Error {
  readonly missing: readonly Program[]

  constructor(missing: readonly Program[], message: string, cause?: unknown) {
    super(message, { cause })
    this.missing = missing
  }
}

/** A program that says its version; a stub that waits for a person is given up. */
const versionMs = 20_000

/** `undefined` for one that runs and is new enough, else why it is not taken. */
async function problemOf(path: string, { args, oldest }: NonNullable<Program['onPath']>): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await promisify(execFile)(path, [...args], { timeout: versionMs })
    const [text, major, minor] = /(\d+)\.?(\d*)/.exec(`${stdout}${stderr}`) ?? []
    if (text === undefined) return `${path} says no version`
    const isOld = Number(major) - oldest[0] || Number(minor) - oldest[1]
    return isOld < 0 ? `${path} is ${text}, and ${oldest.join('.')} is the oldest that will do` : undefined
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string }
    const said = (stderr ?? '').trim().split('\n')[0] ?? ''
    return `${path} does not run (${typeof code === 'number' ? `exit code ${code}` : code}${said && `: ${said}`})`
  }
}

interface PathSearch {
  readonly path?: string
  /** Of those on the PATH that are not taken. */
  readonly problems: readonly string[]
}

async function findOnPath({ onPath }: Program, environment: FetchOptions['environment']): Promise<PathSearch> {
  const problems: string[] = []
  if (onPath === undefined) return { problems }
  const home = onPath.home === undefined ? undefined : environment[onPath.home]
  const folders = [...(home ? [join(home, 'bin')] : []), ...(environment.PATH ?? '').split(delimiter).filter(Boolean)]
  const paths = folders.flatMap((folder) => onPath.names.map((name) => join(folder, name)))
  for (const path of new Set(paths.filter((one) => existsSync(one)))) {
    const problem = await problemOf(path, onPath)
    if (problem === undefined) return { path, problems }
    problems.push(problem)
  }
  return { problems }
}

async function search(program: Program, options: FetchOptions): Promise<string> {
  const { path, problems } = await findOnPath(program, options.environment)
  if (path !== undefined) return path
  const { source, label } = program
  const home = resolve(import.meta.dirname, '../../../../.weir/programs', program.folder)
  const own = resolve(home, program.path)
  if (existsSync(own)) return own
  const why = problems.length === 0 ? '' : ` (${problems.join('; ')})`
  const toDo = installLine(program)
  if (source === undefined) throw new ProgramMissing([program], `${label} is missing${why}: ${toDo}`)
  try {
    await fetchOnce(home, (folder) => source.fill(folder, options, home))
    return own
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const message = `${label} is missing${why} and could not be fetched: ${reason}${toDo && `. Or: ${toDo}`}`
    throw new ProgramMissing([program], message, cause)
  }
}

const searches = new Map<string, Promise<string>>()

/**
 * The path of a program: on the PATH, if it runs and is new enough, else the private copy of this checkout, else that
 * copy, fetched now. Rejects with `ProgramMissing`. A process looks once.
 */
export function findProgram(program: Program, options: FetchOptions): Promise<string> {
  const { PATH, JAVA_HOME } = options.environment
  const key = JSON.stringify([program.folder, PATH, JAVA_HOME])
  const found = searches.get(key) ?? search(program, options)
  searches.set(key, found)
  return found
}

/** Finds all of them, at once. Rejects with one `ProgramMissing` that names every one that is missing, a line each. */
export async function findPrograms(programs: readonly Program[], options: FetchOptions): Promise<string[]> {
  const found = await Promise.allSettled(programs.map((one) => findProgram(one, options)))
  const failures = found.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []))
  const missing = failures.flatMap((one) => {
    if (!(one instanceof ProgramMissing)) throw one
    return one.missing
  })
  if (missing.length > 0) throw new ProgramMissing(missing, failures.map(({ message }) => message).join('\n'))
  return found.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}
