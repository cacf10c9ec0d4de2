import { ClickHouseError } from '@clickhouse/client'
import type { Statements } from './first-that-answers.ts'
import type { ServerAccess } from './server-access.ts'

/** Unknown user, wrong or missing password, authentication failed. */
const authenticationCodes = new Set(['192', '193', '194', '516'])
const readOnly = '164'
const accessDenied = '497'
const settingConstrained = '452'
/** ClickHouse's code for a database that is not there. */
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
  { host, protocol }: Pick<URL, 'host' | 'protocol'>,
  hasAnswered: boolean,
): string | undefined {
  if (untrusted.test(code)) {
    return `ClickHouse at ${host}: its certificate is not from a CA that WEIR_CLICKHOUSE_TLS_CA holds (${message})`
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `ClickHouse at ${host}: its certificate is for another name than WEIR_CLICKHOUSE_URL has (${message})`
  }
  if (code.startsWith('CERT_')) return `ClickHouse at ${host}: its certificate is not valid (${message})`
  if (/^(?:ERR_SSL|EPROTO)/.test(code)) {
    return `ClickHouse at ${host} speaks no TLS, and WEIR_CLICKHOUSE_URL begins with https:// (${code})`
  }
  // A server that has answered over this address closes connections at each restart.
  if (protocol === 'https:' || hasAnswered || !/^HPE_|^ECONNRESET/.test(code)) return undefined
  return `ClickHouse at ${host} closes the connection (${message}): see whether it speaks TLS, and WEIR_CLICKHOUSE_URL must begin with https://`
}

/** Returns a sentence that names the variable or right by which an operator ends a failure, if there is one. */
export function adviceFor(
  error: unknown,
  {
    access,
    url,
    database,
    hasAnswered,
  }: { access: ServerAccess; url: Pick<URL, 'host' | 'protocol'>; database: string; hasAnswered: boolean },
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
  if (error.code === settingConstrained) {
    return `ClickHouse: a constraint of the user ${username} of ${userVariable} forbids a setting that statements of Weir depend on (code 452: ${error.message}): take it from the profile`
  }
  if (error.code !== databaseMissing) return undefined
  return `ClickHouse has no database ${database}: run weir migrate, or see WEIR_CLICKHOUSE_DATABASE`
}

/** Refused statements that are remembered; each service sends some dozens, in a few forms. */
const refusalsMax = 100
/** A statement that is not repeated in this time is forgotten. */
const refusalMs = 60_000

/** Returns a statement's form: equal for statements that differ in their values alone. */
const formOf = (statement: string) => statement.replaceAll(/'(?:[^'\\]|\\.)*'|\b\d+\b/g, '')

/**
 * Wraps the methods of a client that send statements: an error that an operator can fix gets the advice as its message,
 * and `refused` returns the advice for statements that were not accepted since.
 */
export function watchStatements(
  client: Statements,
  adviceFor: (error: unknown, hasAnswered: boolean) => string | undefined,
) {
  const refusals = new Map<string, { readonly advice: string; readonly atMs: number }>()
  let hasAnswered = false
  const advised = (error: unknown): string | undefined => {
    const advice = adviceFor(error, hasAnswered)
    if (advice === undefined || !(error instanceof Error)) return advice
    error.stack = error.stack?.replace(error.message, () => advice) ?? advice
    error.message = advice
    return advice
  }
  const watched = (name: 'query' | 'command' | 'exec' | 'insert') => {
    const send = client[name].bind(client)
    return async (params: { readonly query?: string; readonly table?: string }) => {
      const form = formOf(params.query ?? params.table ?? '')
      try {
        const answer = await Reflect.apply(send, undefined, [params])
        hasAnswered = true
        refusals.delete(form)
        return answer
      } catch (error) {
        const advice = advised(error)
        if (refusals.size >= refusalsMax) refusals.clear()
        if (advice !== undefined) refusals.set(form, { advice, atMs: performance.now() })
        throw error
      }
    }
  }
  const ping = client.ping.bind(client)
  return {
    /** What a person must change so that statements of the last minute are accepted; undefined if all were. */
    refused(): string | undefined {
      const sinceMs = performance.now() - refusalMs
      const lasting = [...refusals.values()].filter(({ atMs }) => atMs >= sinceMs)
      return lasting.length === 0 ? undefined : [...new Set(lasting.map(({ advice }) => advice))].join('; ')
    },
    query: watched('query'),
    command: watched('command'),
    exec: watched('exec'),
    insert: watched('insert'),
    async ping(params: Parameters<typeof ping>[0]) {
      const answer = await ping(params)
      if (answer.success) hasAnswered = true
      else advised(answer.error)
      return answer
    },
  }
}
