import { readSmallFile } from '@weir/runtime/read-small-file.ts'
import { readSecret, type Secret } from '@weir/runtime/secret.ts'
import { addressesOf } from './addresses.ts'
import type { ClickhouseServer } from './variables.ts'

/** Credentials and CA for the next request, with the variables that they come from, for messages. */
export interface ServerAccess {
  readonly username: string
  readonly password: string
  readonly ca: string | undefined
  readonly userVariable: string
  readonly passwordVariable: string
}

/** Files are read again at most once a second, when a request is sent: three small reads. */
const rereadMs = 1_000

/** Reads again. While a file is being replaced, or is gone, the value before is used, which ClickHouse may reject. */
function latest<T>(read: () => T, before: T): T {
  try {
    return read()
  } catch {
    return before
  }
}

/**
 * Follows user, password and CA of a server: at most a second old. WEIR_CLICKHOUSE_USER and WEIR_CLICKHOUSE_PASSWORD
 * win over the URL. Only user and password of a URL's file are read again: another address needs a restart.
 */
export function followAccess(server: ClickhouseServer): () => ServerAccess {
  const { clickhouseUrl, clickhouseUser, clickhousePassword, clickhouseTlsCa } = server
  const isGiven = ({ text }: Secret) => text !== ''
  const credentialsOf = (text: string) => {
    const { username, password } = new URL(addressesOf(text)[0]?.[0] ?? text)
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) }
  }
  let [inUrl, password] = [credentialsOf(clickhouseUrl.text), clickhousePassword.text]
  let ca = clickhouseTlsCa === '' ? undefined : readSmallFile(clickhouseTlsCa)
  let readAtMs = performance.now()
  return () => {
    if (performance.now() - readAtMs >= rereadMs) {
      readAtMs = performance.now()
      inUrl = latest(() => credentialsOf(readSecret(clickhouseUrl)), inUrl)
      password = latest(() => readSecret(clickhousePassword), password)
      if (clickhouseTlsCa !== '') ca = latest(() => readSmallFile(clickhouseTlsCa), ca)
    }
    return {
      username: clickhouseUser || inUrl.username || 'default',
      password: isGiven(clickhousePassword) ? password : inUrl.password,
      ca,
      userVariable: clickhouseUser !== '' || inUrl.username === '' ? 'WEIR_CLICKHOUSE_USER' : clickhouseUrl.variable,
      passwordVariable:
        isGiven(clickhousePassword) || inUrl.password === '' ? clickhousePassword.variable : clickhouseUrl.variable,
    }
  }
}
