import { type Logger, pino } from 'pino'

export type { Logger }

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/**
 * Fields that never reach a log, wherever they stand in what is logged. `data` of an error is what an upstream had
 * sent, `command` what Redis was asked: with the password, where it refused that.
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
 * JSON lines on stdout: an event name first, then fields. Ids always; secrets, payloads and URLs with credentials
 * never.
 */
export function createLogger(service: string, level: LogLevel): Logger {
  return pino({
    level,
    base: { service, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: secretFields, censor: '[redacted]' },
  })
}
