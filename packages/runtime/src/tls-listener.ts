import { X509Certificate } from 'node:crypto'
import type { Server } from 'node:net'
import { createSecureContext, type Server as TlsServer } from 'node:tls'
import { followFiles } from './follow-files.ts'
import { text, type Variable } from './read-config.ts'
import { readSmallFile } from './read-small-file.ts'
import { registerScraped } from './scraped-metrics.ts'
import type { Service } from './start-service.ts'

/** Handshakes take two round trips. A stop waits for one of gRPC, then for one of HTTP, within its 20 s. */
const handshakeTimeoutMs = 5_000
/**
 * Tools write a certificate and its key one after the other; later than this they do not fit because they are wrong.
 */
const pairMs = 2_000

/** A file and the variable that names it; an empty path for none. */
interface NamedFile {
  readonly variable: string
  readonly path: string
}
interface TlsFiles {
  readonly cert: NamedFile
  readonly key: NamedFile
  readonly clientCa: NamedFile
}

/** The variables of every listener of a process, or those that override them for one. */
type Prefix = 'tls' | 'apiTls' | 'grpcTls'
const listenersOf = { tls: 'every listener', apiTls: 'the check API', grpcTls: "Envoy's rate limit service" }
const nameOf = (prefix: Prefix) => `WEIR_${{ tls: '', apiTls: 'API_', grpcTls: 'GRPC_' }[prefix]}TLS`

/** The TLS of a listener: the options of its server, and the files that they were read from. */
export interface ListenerTls {
  readonly files: TlsFiles
  readonly options: ReturnType<typeof readPair> & object
}

/** Three variables: files of a certificate, its key, and the certificates that must have signed those of clients. */
export function tlsVariables<P extends Prefix>(
  prefix: P,
): Readonly<Record<`${P}Cert` | `${P}Key` | `${P}ClientCa`, Variable<string>>> {
  const [own, of] = [nameOf(prefix), listenersOf[prefix]]
  const fallback = ''
  const variable = (name: string, about: string) => text({ name: `${own}_${name}` as 'WEIR_', about, fallback })
  return {
    [`${prefix}Cert`]: {
      ...variable('CERT', `path of the certificate of ${of}; empty for plain connections`),
      check: (config: Config) => problemsOf(config, prefix),
    },
    [`${prefix}Key`]: variable('KEY', `path of the key of ${own}_CERT`),
    [`${prefix}ClientCa`]: variable('CLIENT_CA', `path of the certificates that signed those of clients of ${of}`),
  } as Record<string, Variable<string>> as ReturnType<typeof tlsVariables<P>>
}

type Config = Readonly<Record<string, unknown>>

/**
 * Returns the files that the listener's variables name, or, if unset, those of the process; `none` counts as unset for
 * both.
 */
function filesOf(config: Config, prefix: Prefix): TlsFiles {
  const file = (part: 'Cert' | 'Key' | 'ClientCa'): NamedFile => {
    const from = config[`${prefix}${part}`] ? prefix : 'tls'
    const path = String(config[`${from}${part}`] ?? '')
    const end = { Cert: 'CERT', Key: 'KEY', ClientCa: 'CLIENT_CA' }[part]
    return { variable: `${nameOf(from)}_${end}`, path: path === 'none' ? '' : path }
  }
  return { cert: file('Cert'), key: file('Key'), clientCa: file('ClientCa') }
}

function problemsOf(config: Config, prefix: Prefix): string[] {
  const { cert, key, clientCa } = filesOf(config, prefix)
  const own = [cert, key, clientCa].filter(({ variable }) => variable.startsWith(nameOf(prefix)))
  if (own.length === 0) return []
  if (cert.path === '') {
    // Inherited variables may stay unused; the listener's own must not.
    const unused = own.filter(({ path }) => path !== '')
    return unused.map(({ variable }) => `${variable} is set without ${nameOf(prefix)}_CERT`)
  }
  if (key.path === '') return [`${cert.variable} is set without ${nameOf(prefix)}_KEY`]
  try {
    readPair({ cert, key, clientCa })
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}

/** Returns the TLS of a listener by its configuration; undefined for plain connections. Throws as `readPair` does. */
export function listenerTls(config: Config, prefix: Prefix): ListenerTls | undefined {
  const files = filesOf(config, prefix)
  return files.cert.path === '' ? undefined : { files, options: readPair(files) }
}

/**
 * Reads the files as options of a server. Throws a sentence that begins with a variable unless they are whole and fit
 * each other.
 */
function readPair({ cert, key, clientCa }: TlsFiles) {
  const read = {
    cert: certificatesIn(cert),
    key: textOf(key),
    ca: clientCa.path === '' ? undefined : certificatesIn(clientCa),
  }
  // Node would take a certificate without a key, and then refuse every handshake.
  if (read.key === '') throw new Error(`${key.variable} names an empty file`)
  if (/ENCRYPTED/.test(read.key)) throw new Error(`${key.variable} names a key with a passphrase; remove it`)
  try {
    createSecureContext(read)
  } catch (error) {
    throw new Error(`${key.variable} names no key that matches ${cert.variable} (${(error as Error).message})`)
  }
  const clients = { requestCert: clientCa.path !== '', rejectUnauthorized: true }
  // As without TLS, a client that has ended its side still gets its answer.
  return { ...read, ...clients, handshakeTimeout: handshakeTimeoutMs, allowHalfOpen: true }
}

function textOf({ variable, path }: NamedFile): string {
  try {
    return readSmallFile(path)
  } catch (error) {
    throw new Error(`${variable} names a file that cannot be read (${(error as Error).message})`)
  }
}

/**
 * Reads a file of certificates. OpenSSL would skip a truncated one; without any, Node would trust the clients of every
 * authority of the system.
 */
function certificatesIn(file: NamedFile): string {
  const all = textOf(file)
  const [first = '', ...blocks] = all.split(/(?=-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----)/)
  try {
    const certificates = first.startsWith('-----BEGIN') ? [first, ...blocks] : blocks
    if (certificates.length === 0) throw new Error('none')
    for (const one of certificates) new X509Certificate(one)
    return all
  } catch (error) {
    throw new Error(`${file.variable} names a file without complete certificates in PEM (${(error as Error).message})`)
  }
}

/**
 * Follows the files of listeners: new handshakes get what they hold within a second, connections stay as they are.
 * Files that do not fit each other change nothing: /readyz and the log warn until they do.
 */
export async function followCertificates(
  listeners: readonly (readonly [name: string, server: Server, tls: ListenerTls | undefined])[],
  { run, log, metrics, checkReady }: Service,
): Promise<void> {
  const ends: Record<string, number> = {}
  const help = 'Expiry of the listener certificate, in seconds since 1970'
  registerScraped(metrics, {
    weir_tls_certificate_expiry_timestamp_seconds: { help, label: 'listener', readAll: () => ends },
  })
  for (const [listener, server, tls] of listeners) {
    if (tls === undefined) continue
    const { cert, key, clientCa } = tls.files
    const endOf = (pem: string) => new X509Certificate(pem).validToDate.getTime() / 1_000
    let inUse = tls.options
    let warning: string | undefined
    let timer: NodeJS.Timeout | undefined
    ends[listener] = endOf(inUse.cert)
    const warn = (problem: string) => {
      if (warning !== problem) log.warn({ listener }, `${problem}; the previous certificate stays in use`)
      warning = problem
    }
    const look = () => {
      clearTimeout(timer)
      try {
        const found = readPair(tls.files)
        warning = undefined
        if (JSON.stringify(found) === JSON.stringify(inUse)) return
        // With new ticket keys, too: no session of before is resumed, and so none past another authority.
        const secured = server as TlsServer
        secured.setSecureContext(found)
        inUse = found
        ends[listener] = endOf(found.cert)
        log.info({ listener, ends: ends[listener] }, 'certificate replaced')
      } catch (error) {
        timer = setTimeout(warn, pairMs, (error as Error).message).unref()
      }
    }
    const paths = [cert, key, clientCa].map(({ path }) => path).filter((path) => path !== '')
    await run.own(`certificate of ${listener}`, followFiles(paths, look), (stop) => stop())
    checkReady(`${listener} certificate`, () => {
      if (warning !== undefined) return { warning }
      const hasEnded = (ends[listener] ?? 0) * 1_000 < Date.now()
      return hasEnded ? { warning: `${cert.variable} names a certificate that has expired` } : undefined
    })
  }
}
