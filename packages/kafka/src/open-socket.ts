import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, checkServerIdentity, connect as connectTls, getCACertificates } from 'node:tls'
import { readSmallFile } from '@weir/runtime/read-small-file.ts'
import type { ISocketFactory } from 'kafkajs'
import type { KafkaSecurity } from './security.ts'

/** `reason` is OpenSSL's, without the places in its source. */
type NodeError = Error & { readonly code?: string; readonly reason?: string }

type Tls = NonNullable<KafkaSecurity['tls']>

/** As kafkajs has it: longer than any request. */
const keepAliveMs = 60_000

/**
 * For a server that does not answer a handshake at all: less than what kafkajs gives a connection, which says nothing
 * of TLS.
 */
const handshakeMs = 8_000

/** A broker that wants TLS or a password closes at the first word; one that stops later is another matter. */
const greetingMs = 2_000

/** The first byte of an alert, by which TLS answers what is no TLS. */
const tlsAlert = 0x15

/**
 * Connects as `security` says, by its files as they are now. A fault that a variable ends says which one in its
 * message.
 */
export const socketFactory =
  (security: KafkaSecurity | undefined): ISocketFactory =>
  ({ host, port, onConnect }) => {
    const tls = security?.tls
    const where = `${host}:${port}`
    let isOpen = false
    const onOpen = () => {
      isOpen = true
      onConnect()
    }
    const socket = tls
      ? connectTls({ host, port, ...tlsOptions(tls, host) }, onOpen)
      : connectPlain({ host, port }, onOpen)
    socket.setKeepAlive(true, keepAliveMs)
    if (tls !== undefined) {
      socket.once('connect', () => {
        const late = setTimeout(() => socket.destroy(new Error(noTls(where))), handshakeMs)
        socket.once('secureConnect', () => clearTimeout(late)).once('close', () => clearTimeout(late))
      })
      socket.on('error', (error: NodeError) => {
        error.message = explainTls(error, where, tls, isOpen)
      })
    }
    explainEnd(socket, where, security, () => isOpen)
    return socket
  }

function read(path: string, variable: string): string | undefined {
  try {
    return path === '' ? undefined : readSmallFile(path)
  } catch (error) {
    throw new Error(`${variable} names a file that cannot be read (${(error as Error).message})`)
  }
}

/** As other clients of Kafka have it: the system's; those of Node where there are none. Node reads them once. */
function knownAuthorities(): string[] | undefined {
  const known = getCACertificates('system')
  return known.length === 0 ? undefined : known
}

function tlsOptions({ ca, cert, key, serverName }: Tls, host: string): ConnectionOptions {
  const name = serverName || host
  return {
    ca: read(ca, 'WEIR_KAFKA_TLS_CA') ?? knownAuthorities(),
    cert: read(cert, 'WEIR_KAFKA_TLS_CERT'),
    key: read(key, 'WEIR_KAFKA_TLS_KEY'),
    ...(isIP(name) ? {} : { servername: name }),
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
  }
}

const unknownAuthority =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_\w+|CERT_UNTRUSTED|INVALID_CA)$/
const clientRefused = /ALERT_(NO_|BAD_|UNSUPPORTED_)?(CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED)/

const noTls = (where: string) =>
  `${where} does not respond over TLS: check that WEIR_KAFKA_BROKERS names its TLS port, or check WEIR_KAFKA_TLS`

function explainTls(error: NodeError, where: string, { ca, cert }: Tls, isSecure: boolean): string {
  const { code = '', reason = error.message } = error
  if (unknownAuthority.test(code))
    return `the certificate of ${where} is not from a CA that ${ca === '' ? 'the system trusts, see WEIR_KAFKA_TLS_CA' : 'WEIR_KAFKA_TLS_CA holds'} (${error.message})`
  if (code.startsWith('CERT_')) return `the certificate of ${where} has expired or is not valid yet (${reason})`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate of ${where} is for a different host name: set WEIR_KAFKA_TLS_SERVER_NAME (${reason})`
  if (clientRefused.test(code)) {
    return cert === ''
      ? `${where} requires a client certificate: see WEIR_KAFKA_TLS_CERT and WEIR_KAFKA_TLS_KEY (${reason})`
      : `${where} does not accept the certificate in WEIR_KAFKA_TLS_CERT (${reason})`
  }
  if (!isSecure && /^(ERR_SSL|ECONNRESET|EPROTO)/.test(code)) return `${noTls(where)} (${reason})`
  return error.message
}

/** kafkajs would only say that the connection was closed. */
function explainEnd(socket: Socket, where: string, security: KafkaSecurity | undefined, isOpen: () => boolean): void {
  const sinceMs = performance.now()
  let answers = 0
  let isAlert = false
  socket.once('data', (chunk: Buffer) => {
    answers = 1
    isAlert = chunk[0] === tlsAlert
    socket.once('data', () => {
      answers = 2
    })
  })
  const why = () => {
    if (performance.now() - sinceMs > greetingMs) return undefined
    if (!isOpen()) return security?.tls === undefined ? undefined : noTls(where)
    if (security?.tls === undefined && (answers === 0 || isAlert))
      return `${where} closed the connection without a response: if the broker uses TLS, set WEIR_KAFKA_TLS`
    if (security?.sasl === undefined && answers < 2)
      return `${where} closed the connection after its first response: if the broker requires a password, set WEIR_KAFKA_SASL_MECHANISM`
    return undefined
  }
  socket.on('error', (error: NodeError) => {
    if (error.code === 'ECONNRESET') error.message = why() ?? error.message
  })
  socket.on('end', () => {
    const reason = why()
    if (reason !== undefined) socket.emit('error', new Error(reason))
  })
}
