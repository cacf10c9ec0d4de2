import { findPrograms, ProgramMissing } from '@weir/local-programs/find-program.ts'
import type { NativeServer } from '@weir/local-programs/native-server.ts'
import type { TestProject } from 'vitest/node'
import { startContainer } from './start-container.ts'
import { startServer } from './start-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** `redis://host:port` */
    redisUrl: string
    /** `host:port` */
    kafkaBrokers: string
    /** `http://host:port` */
    clickhouseUrl: string
    /** Files, of servers that were started for the tier. */
    redisLog: string
    kafkaLog: string
    clickhouseLog: string
  }
}

type AddressName = 'redisUrl' | 'kafkaBrokers' | 'clickhouseUrl'

/**
 * Gives a tier its server: the address in the environment, else the native program, else a container, else an error
 * that says what to install. Tests see only the address, by `inject(name)`.
 */
export async function provideServer(project: TestProject, server: NativeServer, name: AddressName, variable: string) {
  const given = process.env[variable]
  if (given) return project.provide(name, given)
  const missing = await findPrograms(server.needs, { environment: process.env, tell: () => undefined }).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (missing === undefined) {
    const running = await startServer(server)
    project.provide(name, running.address)
    project.provide(`${server.name}Log`, running.logFile)
    return () => running.close()
  }
  if (!(missing instanceof ProgramMissing)) throw missing
  const container = await startContainer(server.name)
  if (container === undefined) {
    throw new Error(`no ${server.name} for the tests: ${missing.message}\nOr set ${variable}, or start a Docker engine`)
  }
  project.provide(name, container.address)
  return () => container.close()
}
