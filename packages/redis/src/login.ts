import { createSecureContext, type SecureContext } from 'node:tls'
import { WeirError } from '@weir/core/errors.ts'
import { readSmallFile } from '@weir/runtime/read-small-file.ts'
import { readSecret, type Secret } from '@weir/runtime/secret.ts'
import { parseRedisUrl, type RedisAddress, type RedisTlsFiles } from './redis-url.ts'

/** A URL that stays as it is, or the variable that holds one. */
export type RedisSource = string | Secret

/** What a connection identifies itself with. Undefined is nothing: it replaces what was there before. */
interface Credentials {
  readonly username: string | undefined
  readonly password: string | undefined
  readonly tls?: { readonly secureContext: SecureContext }
}

/** How connections to one address log in, now and later. */
export interface Login {
  /** Of the variable that holds the address, for messages. */
  readonly variable: string
  /** Of the start; only its user and password may change. */
  readonly address: RedisAddress
  /** As they are now. What cannot be read or used is reported, and the last that could be stays. */
  login(): Credentials
}

function addressOf(url: string): RedisAddress {
  const parsed = parseRedisUrl(url)
  if ('problem' in parsed) throw new Error(`the Redis address ${parsed.problem}`)
  return parsed.address
}

const serverText = ({ username, password, ...server }: RedisAddress) => JSON.stringify(server)

const tlsNames = 'WEIR_REDIS_TLS_CA, WEIR_REDIS_TLS_CERT and WEIR_REDIS_TLS_KEY'

/** Parses certificates only when a file has changed: connections to all nodes of a Cluster may begin together. */
function tlsReader(files: RedisTlsFiles | undefined): () => SecureContext {
  let last: { readonly text: string; readonly context: SecureContext } | undefined
  const read = (file = '') => (file === '' ? undefined : readSmallFile(file))
  return () => {
    try {
      const { redisTlsCa, redisTlsCert, redisTlsKey } = files ?? {}
      const pem = { ca: read(redisTlsCa), cert: read(redisTlsCert), key: read(redisTlsKey) }
      const text = JSON.stringify(pem)
      if (last?.text !== text) last = { text, context: createSecureContext(pem) }
      return last.context
    } catch (error) {
      throw new WeirError('CONFIG_INVALID', `${tlsNames} cannot be used: ${(error as Error).message}`, error)
    }
  }
}

/** Throws CONFIG_INVALID when the files are wrong at the start. */
export function openLogin(
  source: RedisSource,
  { tls, onError }: { readonly tls?: RedisTlsFiles | undefined; readonly onError: (error: Error) => void },
): Login {
  const secret = typeof source === 'string' ? { variable: 'its address', file: undefined, text: source } : source
  const address = addressOf(secret.text)
  const secureContext = tlsReader(tls)
  const read = (url: string): Credentials => {
    const now = addressOf(url)
    if (serverText(now) !== serverText(address)) {
      throw new Error(`${secret.variable} names a different Redis than at the start: restart this process to use it`)
    }
    const { username, password, isTls } = now
    return {
      username: username || undefined,
      password: password || undefined,
      ...(isTls ? { tls: { secureContext: secureContext() } } : {}),
    }
  }
  let last = read(secret.text)
  return {
    variable: secret.variable,
    address,
    login() {
      try {
        last = read(readSecret(secret))
      } catch (error) {
        onError(error as Error)
      }
      return last
    },
  }
}
