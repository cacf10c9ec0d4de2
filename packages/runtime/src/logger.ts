import { setTimeout as delay } from 'node:timers/promises'
import { destination, type Logger, pino } from 'pino'

export type { Logger }

/** The levels of the log, least severe first. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
/** The least severe level that is written. */
export type LogLevel = (typeof logLevels)[number]

/**
 * Fields that are never logged, at the top or one level below. `data` of an error is what an upstream had sent,
 * `command` is the command to Redis: with the password, if Redis refused that.
 */
const secretFields = [
  'authorization',
  'token',
  'secret',
  'password',
  'key',
  'apiKey',
  'url',
  'data',
  'command',
].flatMap((name) => [name, `*.${name}`])

/**
 * Creates a logger of JSON lines on stdout: an event name first, then fields. Ids always; secrets, payloads and URLs
 * with credentials never.
 */
export const createLogger = (service: string, level: LogLevel): Logger => pino(optionsOf(service, level))

const optionsOf = (service: string, level: LogLevel) => ({
  level,
  base: { service, pid: process.pid },
  timestamp: pino.stdTimeFunctions.isoTime,
  redact: { paths: secretFields, censor: '[redacted]' },
})

/** A stop waits for a slow reader of the log for no longer. */
const lastLinesMs = 1_000

/**
 * Creates a logger for lines that come with requests: it writes behind their backs, and drops lines while those that
 * the reader of stdout has not taken are more than `bytesMax`. Dropped lines are counted.
 *
 * @param dest the file of a bench
 */
export function createBusyLogger(service: string, bytesMax: number, dest: string | 1 = 1) {
  const stdout = destination({ dest, sync: false, maxLength: bytesMax })
  let dropped = 0
  stdout.on('drop', () => {
    dropped += 1
  })
  return {
    log: pino(optionsOf(service, 'info'), stdout),
    get dropped() {
      return dropped
    },
    async close() {
      const written = new Promise((done) => stdout.once('close', done))
      stdout.end()
      await Promise.race([written, delay(lastLinesMs, undefined, { ref: false })])
      stdout.destroy()
    },
  }
}
