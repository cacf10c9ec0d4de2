import { ClickHouseError } from '@clickhouse/client'
import type { ServerAccess } from './server-access.ts'

/** Unknown user, wrong or missing password, authentication failed. */
const authenticationCodes = new Set(['192', '193', '194', '516'])
const readOnly = '164'
const accessDenied = '497'
export const databaseMissing = '81'

const untrusted = /SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|CERT_UNTRUSTED|CERT_SIGNATURE_FAILURE/

/** `INSERT(v, id) ON weir.decisions` without its columns: they may be dozens. */
const withoutColumns = (grant: string) => grant.replaceAll(/(?<=\w)\([^)]*\)/g, '')

function missingRight({ message }: Error, { username, userVariable }: ServerAccess): string {
  const [, found] =
    /Missing permissions: (.+?)\)/s.exec(withoutColumns(message)) ?? /have the grant (.+?)\.? *$/s.exec(message) ?? []
  const user = `ClickHouse: the user ${username} of ${userVariable}`
  if (found === undefined) return `${user} may not do this (code 497): ${message}`
  const grant = withoutColumns(found)
  return `${user} lacks ${grant} (code 497): GRANT ${grant} TO ${username}`
}

function badConnection(
  { code = '', message }: NodeJS.ErrnoException,
  { host, protocol }: URL,
  hasAnswered: boolean,
): string | undefined {
  if (untrusted.test(code)) {
    return `ClickHouse at ${host}: its certificate is not signed by what WEIR_CLICKHOUSE_TLS_CA holds (${message})`
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `ClickHouse at ${host}: its certificate is for another name than WEIR_CLICKHOUSE_URL has (${message})`
  }
  if (code.startsWith('CERT_')) return `ClickHouse at ${host}: its certificate is not valid (${message})`
  if (/^(?:ERR_SSL|EPROTO)/.test(code)) {
    return `ClickHouse at ${host} speaks no TLS, and WEIR_CLICKHOUSE_URL begins with https:// (${code})`
  }
  // Of a server that has answered over this address it is what any restart does.
  if (protocol === 'https:' || hasAnswered || !/^HPE_|^ECONNRESET/.test(code)) return undefined
  return `ClickHouse at ${host} closes the connection (${message}): see whether it speaks TLS, and WEIR_CLICKHOUSE_URL must begin with https://`
}

/** Returns a sentence that names the variable or right by which an operator ends a failure, if there is one. */
export function adviceFor(
  error: unknown,
  { access, url, database, hasAnswered }: { access: ServerAccess; url: URL; database: string; hasAnswered: boolean },
): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (!(error instanceof ClickHouseError)) return badConnection(error, url, hasAnswered)
  const { username, userVariable, passwordVariable } = access
  if (authenticationCodes.has(error.code)) {
    const variables = [...new Set([passwordVariable, userVariable])].join(' and ')
    return `ClickHouse refuses the user ${username} (authentication failed, code ${error.code}): see ${variables}`
  }
  if (error.code === accessDenied) return missingRight(error, access)
  if (error.code === readOnly) {
    return `ClickHouse: the user ${username} of ${userVariable} may only read (code 164: ${error.message}): its profile must have readonly 0`
  }
  if (error.code !== databaseMissing) return undefined
  return `ClickHouse has no database ${database}: run weir migrate, or see WEIR_CLICKHOUSE_DATABASE`
}
