/** Where an error comes from. */
export interface FaultContext {
  /** host:port, or the master's name. */
  readonly where: string
  /** The variable that holds the address. */
  readonly variable: string
  readonly username: string
  readonly isTls: boolean
  /** The connection stands, and Redis has not answered on it yet. */
  readonly isHandshake: boolean
}

/** From an error's words to what an operator looks at. Words in capitals are filled in; SAID is the error itself. */
const explanations: readonly (readonly [RegExp, string])[] = [
  [/WRONGPASS|NOAUTH|invalid password/, ' refuses the user USER (SAID): see VARIABLE'],
  [/self-signed|unable to (?:get|verify)/, ': its certificate is not signed by what WEIR_REDIS_TLS_CA holds (SAID)'],
  [/altnames/, ': its certificate is for another host name than VARIABLE gives (SAID)'],
  [/certificate (?:has expired|is not yet valid)/, ': its certificate is not valid now (SAID)'],
  [/certificate required/, ' wants a client certificate (SAID): set WEIR_REDIS_TLS_CERT and WEIR_REDIS_TLS_KEY'],
  [/alert |handshake failure/, ' does not accept the certificate of WEIR_REDIS_TLS_CERT (SAID)'],
  [/wrong version number/, ' speaks no TLS (SAID): VARIABLE must begin with redis instead of rediss'],
  [/ENOTFOUND|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN/, ' cannot be reached (SAID): see VARIABLE'],
]

const ended = /ECONNRESET|EPIPE|closed|Protocol error/

function explanationFor(said: string, { isTls, isHandshake }: FaultContext): string {
  if (isHandshake && ended.test(said)) {
    return isTls
      ? ' ends new connections (SAID): if it wants a client certificate, see WEIR_REDIS_TLS_CERT'
      : ' ends new connections (SAID): if it speaks TLS, VARIABLE must begin with rediss instead of redis'
  }
  const found = explanations.find(([words]) => words.test(said))?.[1]
  if (found !== undefined) return found
  if (!/ETIMEDOUT/.test(said)) return ': SAID'
  return ` does not answer (SAID): see VARIABLE${isTls ? ', which must begin with redis if it speaks no TLS' : ''}`
}

/** Explains an error of a connection: what failed, and which variable to check. Never repeats a password. */
export function explainFault({ message }: Error, context: FaultContext): string {
  const ofSentinels = /^All sentinels are unreachable.*?(?:Last error: (.*))?$/s.exec(message)
  const words = ofSentinels === null ? message : (ofSentinels[1] ?? 'none answers')
  // OpenSSL's own words: `…:SSL routines:FUNCTION:WORDS:FILE:LINE:…`.
  const said = /SSL routines:[^:]*:([^:]+)/.exec(words)?.[1] ?? words.trim()
  const isUnknown = ofSentinels !== null && /NOAUTH/.test(said)
  const text = isUnknown ? ' want a password (SAID), and are asked without one' : explanationFor(said, context)
  const server = ofSentinels === null ? `Redis at ${context.where}` : `The Sentinels of ${context.where}`
  return `${server}${text}`
    .replace('VARIABLE', context.variable)
    .replace('USER', context.username || 'default')
    .replace('SAID', () => said)
}
