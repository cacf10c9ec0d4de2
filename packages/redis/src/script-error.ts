/** Errors of scripts that have written nothing: decide.lua writes at its end, with SET or SETRANGE first. */
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

/** Of them, those that say nothing about Redis, only about what it was asked: another call may well go through. */
const aboutTheCall: ReadonlySet<string> = new Set(['CROSSSLOT', 'DECIDEARGS'])

/** ioredis's own words for a command that it did not write to the socket. */
const notSent = "Stream isn't writeable"

/** Below Redis 7 an error inside a script is wrapped: `ERR Error running script … @user_script: 9: -OOM command …`. */
function replyCode(message: string): string {
  const first = /^[A-Z]+/.exec(message)?.[0] ?? 'ERR'
  return first === 'ERR' ? (/: -([A-Z]+) /.exec(message)?.[1] ?? first) : first
}

/**
 * What an error says about the call's charges. Its code is Redis's own; `NOT_SENT` and `CONNECTION` are of errors that
 * are not Redis's.
 */
export function readScriptError(error: unknown) {
  const unknown = { code: 'CONNECTION', charged: 'unknown', isAboutTheCall: false, address: '' } as const
  if (!(error instanceof Error)) return unknown
  if (error.name === 'ReplyError') {
    const code = replyCode(error.message)
    const isRedirected = code === 'MOVED' || code === 'ASK'
    return {
      code,
      charged: refusedBeforeWriting.has(code) ? 'no' : 'unknown',
      /** Redis is well, the call is not. */
      isAboutTheCall: aboutTheCall.has(code),
      /** Where MOVED and ASK send the call, host:port; else empty. The host is empty for the one that said so. */
      address: isRedirected ? (error.message.split(' ')[2] ?? '') : '',
    } as const
  }
  if (error.message.startsWith(notSent)) return { ...unknown, code: 'NOT_SENT', charged: 'no' } as const
  return unknown
}
