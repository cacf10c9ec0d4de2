import type { Charged } from '@weir/core/limits/decision.ts'

/** Errors with which Redis refuses a script before it has written anything; decide.lua writes with SET alone, at its end. */
const refusedBeforeWriting: ReadonlySet<string> = new Set([
  'ASK',
  'BUSY',
  'CLUSTERDOWN',
  'CROSSSLOT',
  'DECIDEARGS',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'MOVED',
  'NOAUTH',
  'NOPERM',
  'NOREPLICAS',
  'NOSCRIPT',
  'OOM',
  'READONLY',
  'TRYAGAIN',
])

/** ioredis's own words for a command that it did not write to the socket. */
const notSent = "Stream isn't writeable"

/** An error of a call, by Redis's own code; `NOT_SENT` and `CONNECTION` for those that are not Redis's. */
export interface ScriptError {
  readonly code: string
  readonly charged: Exclude<Charged, 'yes'>
}

/** Below Redis 7 a command's error inside a script is wrapped: `ERR Error running script … @user_script: 9: -OOM command …`. */
function replyCode(message: string): string {
  const first = /^[A-Z]+/.exec(message)?.[0] ?? 'ERR'
  return first === 'ERR' ? (/: -([A-Z]+) /.exec(message)?.[1] ?? first) : first
}

/** What an error says about the call's charges. */
export function readScriptError(error: unknown): ScriptError {
  if (!(error instanceof Error)) return { code: 'CONNECTION', charged: 'unknown' }
  if (error.name === 'ReplyError') {
    const code = replyCode(error.message)
    return { code, charged: refusedBeforeWriting.has(code) ? 'no' : 'unknown' }
  }
  if (error.message.startsWith(notSent)) return { code: 'NOT_SENT', charged: 'no' }
  return { code: 'CONNECTION', charged: 'unknown' }
}
