import { type Logger, pino } from 'pino'

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
export function createLogger(service: string, level: LogLevel): Logger {
  return pino({
    level,
    base: { service, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: secretFields, censor: '[redacted]' },
  })
}
