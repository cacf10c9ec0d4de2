/*
 * Called by the launcher, before anything of Weir is there: `main.ts run|all [up]` has pnpm install what Weir runs on,
 * or what its tests, benches and documents need too, and fetches beside it the programs that `up` starts.
 */

import { FetchProgress } from './fetch-progress.ts'
import { findPrograms } from './find-program.ts'
import { installPackages } from './packages.ts'
import type { Program } from './program.ts'
import { javaProgram, kafkaProgram, redisProgram } from './server-programs.ts'

const { env: environment, stderr } = process
const [level, command] = process.argv.slice(2)

/** What `weir up` starts where no running server is named. */
function programsFor(word: string | undefined): readonly Program[] {
  if (word !== 'up') return []
  const isGiven = (name: string) => Boolean(environment[name] || environment[`${name}_FILE`])
  return [
    ...(isGiven('WEIR_REDIS_URL') ? [] : [redisProgram]),
    ...(isGiven('WEIR_KAFKA_BROKERS') ? [] : [javaProgram, kafkaProgram]),
  ]
}

const progress = new FetchProgress(stderr, environment.TERM)
const options = { environment, tell: progress.tell }
const ended = await Promise.allSettled([
  installPackages(level === 'all' ? 'all' : 'run', options),
  findPrograms(programsFor(command), options),
])
const problems = ended.flatMap((one) => (one.status === 'rejected' ? [String(one.reason.message)] : []))
progress.end(problems.length === 0 ? 'dependencies are installed' : problems.join('\n'))
process.exit(problems.length === 0 ? 0 : 1)
