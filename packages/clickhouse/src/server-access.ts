import { readSmallFile } from '@weir/runtime/read-small-file.ts'
import { readSecret, type Secret } from '@weir/runtime/secret.ts'
import type { ClickhouseServer } from './variables.ts'

/** As ClickHouse is to be asked now, with the variables that say so, for messages. */
export interface ServerAccess {
  readonly username: string
  readonly password: string
  readonly ca: string | undefined
  readonly userVariable: string
  readonly passwordVariable: string
}

/** Files are looked at this often at most, when a request is sent: three small reads. */
const rereadMs = 1_000

/** A file that is being replaced, or has gone, leaves what it said last: ClickHouse says whether that is still right. */
function latest<T>(read: () => T, before: T): T {
  try {
    return read()
  } catch {
    return before
  }
}

/**
 * User, password and CA of a server, as of within the last second. USER and PASSWORD win over what the URL says. Of a URL's file only user
 * and password are read again: another address needs a restart.
 */
export function followAccess(server: ClickhouseServer): () => ServerAccess {
  const { clickhouseUrl, clickhouseUser, clickhousePassword, clickhouseTlsCa } = server
  const isGiven = ({ text }: Secret) => text !== ''
  const credentialsOf = (text: string) => {
    const { username, password } = new URL(text)
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
