import { existsSync, readFileSync } from 'node:fs'
import { copyFile, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { projectRoot } from '@weir/cli/project.ts'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import { type Authority, createAuthority } from './certificates.ts'
import { type RunningServer, startServer } from './start-server.ts'

/** A statement as it came, by whom. */
export interface SentStatement {
  readonly user: string
  /** Without the rows of an INSERT. */
  readonly text: string
  /** The request's address with its parameters, and its body. */
  readonly path: string
  readonly body: Buffer<ArrayBuffer>
}

/** The local ClickHouse behind TLS and users with passwords of their own, as a proxy has them. */
export interface ClickhouseProxy {
  readonly url: string
  readonly server: RunningServer
  readonly authority: Authority
  /** By user; the others are answered code 516. */
  readonly passwords: Map<string, string>
  /** Every statement that was let through or refused. */
  readonly sent: SentStatement[]
  /** What ClickHouse says about a missing right; undefined for a statement that is let through. */
  refuse: (statement: SentStatement) => string | undefined
  /** The variables of a user; its password is in `FILE`, which the test writes again. */
  environmentOf(user: string, database: string): Promise<Record<string, string>>
  passwordFileOf(user: string): string
  /**
   * Starts the engine again, where its user has these grants alone, such as `SELECT ON db.table`; all for undefined.
   * Each time it has the data of before the first time.
   */
  useGrants(grants: readonly string[] | undefined): Promise<void>
  /** Starts the engine again, where the profile of its user has these settings. */
  useProfile(settings: Readonly<Record<string, string>>): Promise<void>
  /** What the engine answers to a statement now. */
  repeat(statement: SentStatement): Promise<string>
  /** Serves another certificate from the next connection on. */
  useCertificateOf(authority: Authority): Promise<void>
  close(): Promise<void>
}

const everyRight = `${projectRoot}/infra/local/clickhouse/users.xml`

function credentialsOf({ headers }: IncomingMessage) {
  const text = Buffer.from((headers.authorization ?? '').replace('Basic ', ''), 'base64').toString()
  const colon = text.indexOf(':')
  return { user: text.slice(0, colon), password: text.slice(colon + 1) }
}

/** As ClickHouse answers it. */
function answerException(response: ServerResponse, code: number, text: string): void {
  response.writeHead(403, { 'content-type': 'text/plain', 'x-clickhouse-exception-code': code }).end(`${text}\n`)
}

function behindOf({ address }: RunningServer) {
  const { origin, username, password } = new URL(address)
  return { origin, authorization: `Basic ${btoa(`${username}:${password}`)}` }
}

/** By a connection of its own: one that is kept may be closed while a statement is on its way. */
async function ask(url: string, authorization: string, method = 'POST', body: Buffer = Buffer.alloc(0)) {
  const answered = Promise.withResolvers<IncomingMessage>()
  const headers = { authorization, 'content-length': body.length }
  httpRequest(url, { method, headers, agent: false }, answered.resolve).on('error', answered.reject).end(body)
  const answer = await answered.promise
  return { statusCode: answer.statusCode, headers: answer.headers, text: await buffer(answer) }
}

/** As the proxy: checks the password, notes the statement, and hands it on. */
async function answer(secure: ClickhouseProxy, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { origin, authorization } = behindOf(secure.server)
  const [path = '/', body] = [request.url, await buffer(request)]
  const { user, password } = credentialsOf(request)
  const isPing = path.startsWith('/ping')
  if (!isPing && secure.passwords.get(user) !== password) {
    const why = 'Authentication failed: password is incorrect, or there is no user with such name'
    return answerException(response, 516, `Code: 516. DB::Exception: ${user}: ${why}. (AUTHENTICATION_FAILED)`)
  }
  const text = new URL(path, origin).searchParams.get('query') ?? body.toString()
  const statement: SentStatement = { user, text, path, body: Buffer.from(body) }
  if (!isPing) secure.sent.push(statement)
  const refusal = secure.refuse(statement)
  if (refusal !== undefined) return answerException(response, 497, refusal)
  const { statusCode = 502, headers, text: found } = await ask(`${origin}${path}`, authorization, request.method, body)
  const kept = Object.entries(headers).filter(([name]) => /^(?:x-clickhouse-|content-type$)/.test(name))
  response.writeHead(statusCode, Object.fromEntries(kept)).end(found)
}

async function restartWithProfile(server: RunningServer, rights: string, settings: Readonly<Record<string, string>>) {
  const lines = Object.entries(settings).map(([name, value]) => `<${name}>${value}</${name}>`)
  await server.kill('SIGTERM')
  await writeFile(rights, readFileSync(everyRight, 'utf8').replace('<default>', `$&${lines.join('')}`))
  await server.restart()
}

export async function startClickhouseProxy(): Promise<ClickhouseProxy> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-tls-'))
  const rights = join(dir, 'users.xml')
  await copyFile(everyRight, rights)
  const server = await startServer({
    ...clickhouseServer,
    async plan(options) {
      const plan = await clickhouseServer.plan(options)
      return { ...plan, command: [...plan.command, '--users-file', rights] }
    },
  })
  const authority = await createAuthority(dir)
  const pairOf = async (by: Authority) => {
    const { certFile, keyFile } = await by.issue('clickhouse')
    return { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  }
  const { origin, authorization } = behindOf(server)
  const passwords = new Map<string, string>()
  const passwordFileOf = (user: string) => join(dir, `${user}.password`)

  const front = createServer(await pairOf(authority), (request, response) => {
    // ClickHouse behind is down: so is the proxy.
    answer(secure, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((done) => front.listen(0, '127.0.0.1', done))
  const secure: ClickhouseProxy = {
    url: `https://127.0.0.1:${(front.address() as AddressInfo).port}`,
    server,
    authority,
    passwords,
    passwordFileOf,
    sent: [],
    refuse: () => undefined,
    async environmentOf(user, database) {
      passwords.set(user, `secret of ${user}`)
      await writeFile(passwordFileOf(user), `secret of ${user}\n`)
      return {
        WEIR_CLICKHOUSE_URL: secure.url,
        WEIR_CLICKHOUSE_USER: user,
        WEIR_CLICKHOUSE_PASSWORD_FILE: passwordFileOf(user),
        WEIR_CLICKHOUSE_DATABASE: database,
        WEIR_CLICKHOUSE_TLS_CA: authority.caFile,
      }
    },
    async useGrants(grants) {
      const [data, kept] = [join(server.dir, 'data'), join(server.dir, 'kept')]
      const isKept = existsSync(kept)
      await server.kill(isKept ? 'SIGKILL' : 'SIGTERM') // Only data that is to be kept needs an orderly end.
      if (isKept) await rm(data, { recursive: true })
      await cp(isKept ? kept : data, isKept ? data : kept, { recursive: true, verbatimSymlinks: true })
      if (grants === undefined) await rm(kept, { recursive: true })
      const all = readFileSync(everyRight, 'utf8')
      const queries = grants?.map((one) => `<query>GRANT ${one}</query>`).join('')
      const some = all.replace(/<query>.*<\/query>/, queries || '<query>GRANT NONE ON *.*</query>')
      await writeFile(rights, grants === undefined ? all : some)
      await server.restart()
    },
    useProfile: (settings) => restartWithProfile(server, rights, settings),
    repeat: async ({ path, body }) => (await ask(`${origin}${path}`, authorization, 'POST', body)).text.toString(),
    async useCertificateOf(by) {
      front.setSecureContext(await pairOf(by))
      front.closeAllConnections()
    },
    async close() {
      front.closeAllConnections()
      front.close()
      await server.close()
      await rm(dir, { recursive: true })
    },
  }
  return secure
}
