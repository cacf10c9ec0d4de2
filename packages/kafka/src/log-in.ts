import { createRequire } from 'node:module'
import { readSecret } from '@weir/runtime/secret.ts'
import type { AuthenticationProviderArgs, Authenticator, Mechanism } from 'kafkajs'
import type { KafkaSecurity, OauthLogin, PasswordLogin } from './security.ts'
import { kafkajs, loginFault } from './wire/kafkajs-fixes.ts'

const requireCjs = createRequire(import.meta.url)

type Provider = (sasl: { username: string; password: string }) => (args: AuthenticationProviderArgs) => Authenticator

const authenticators: Readonly<Record<PasswordLogin['mechanism'], Provider>> = {
  PLAIN: requireCjs('kafkajs/src/broker/saslAuthenticator/plain'),
  'SCRAM-SHA-256': requireCjs('kafkajs/src/broker/saslAuthenticator/scram256'),
  'SCRAM-SHA-512': requireCjs('kafkajs/src/broker/saslAuthenticator/scram512'),
}

const bearer: { request(sasl: object, token: { value: string }): Promise<{ encode(): Promise<Buffer> }> } = requireCjs(
  'kafkajs/src/protocol/sasl/oauthBearer',
)

const isRefusal = (error: unknown) => error instanceof Error && 'type' in error

async function logIn(login: PasswordLogin, args: AuthenticationProviderArgs): Promise<void> {
  const { mechanism, username, password } = login
  const text = readNow(() => readSecret(password))
  let broken: unknown
  const saslAuthenticate: AuthenticationProviderArgs['saslAuthenticate'] = (message) =>
    args.saslAuthenticate(message).catch((error: unknown) => {
      broken = isRefusal(error) ? undefined : error
      throw error
    })
  try {
    await authenticators[mechanism]({ username, password: text })({ ...args, saslAuthenticate }).authenticate()
  } catch (error) {
    if (broken !== undefined) throw broken
    const reason = (error as Error).message
    throw loginFault(`Kafka refuses the user ${username} (${reason}): see ${password.variable}`)
  }
}

/** A caller waits for a connection meanwhile. */
const requestMs = 10_000

/** A token has some kilobytes. */
const answerBytesMax = 256 * 1024

/** Of a token whose answer does not say (RFC 6749, 5.1: it should). */
const unknownLifetimeS = 60

/** A token is used for this part of its time: Kafka ends a session with the token that it began with. */
const usedPart = 0.8

/** As RFC 6749, 2.3.1 has it in HTTP Basic. */
const formEncoded = (value: string) => new URLSearchParams({ v: value }).toString().slice(2)

async function request({ tokenUrl, clientId, clientSecret, scope }: OauthLogin): Promise<Record<string, unknown>> {
  const basic = `${formEncoded(clientId)}:${formEncoded(readSecret(clientSecret))}`
  const answer = await fetch(tokenUrl, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(basic).toString('base64')}`, accept: 'application/json' },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope === '' ? {} : { scope }) }),
    redirect: 'error', // the secret is for this address alone
    signal: AbortSignal.timeout(requestMs),
  })
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length
    if (bytes > answerBytesMax) throw new Error(`it answers with more than ${answerBytesMax} bytes`)
    chunks.push(chunk)
  }
  const parsed: unknown = await new Response(Buffer.concat(chunks)).json().catch(() => undefined)
  const fields: Record<string, unknown> = { ...(typeof parsed === 'object' ? parsed : {}) }
  if (answer.ok) return fields
  // A code (RFC 6749, 5.2). Other text may repeat what was sent to it, the secret among it.
  const error = /^[a-z_]{1,60}$/.test(String(fields.error)) ? ` ${fields.error}` : ''
  throw new Error(`it answers ${answer.status}${error}; see WEIR_KAFKA_OAUTH_CLIENT_ID and ${clientSecret.variable}`)
}

/** Tokens of one client, as long as they are good. */
function openTokens(login: OauthLogin) {
  let kept: { readonly token: Promise<string>; untilMs: number; text?: string } | undefined
  const ask = async () => {
    try {
      const { access_token: token, expires_in: seconds } = await request(login)
      if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) throw new Error('it answers without access_token')
      return { token, seconds: Number(seconds) > 0 ? Number(seconds) : unknownLifetimeS }
    } catch (error) {
      const { message, cause } = error as Error
      const reason = cause instanceof Error ? `${message}: ${cause.message}` : message
      throw new Error(`no token for Kafka from WEIR_KAFKA_OAUTH_TOKEN_URL: ${reason}`)
    }
  }
  return {
    /** Rejects with a sentence that names the variables to look at. */
    get(): Promise<string> {
      if (kept !== undefined && performance.now() < kept.untilMs) return kept.token
      const askedMs = performance.now()
      const answer = ask()
      const mine: typeof kept = { token: answer.then(({ token }) => token), untilMs: Number.POSITIVE_INFINITY }
      kept = mine // for all connections that are made meanwhile
      answer.then(
        ({ token, seconds }) => {
          mine.text = token
          mine.untilMs = askedMs + seconds * usedPart * 1_000
        },
        () => {
          mine.untilMs = 0
        },
      )
      return mine.token
    },
    /** Kafka has refused it: the next one is asked for. */
    forget(token: string): void {
      if (kept?.text === token) kept = undefined
    },
  }
}

const opened = new WeakMap<OauthLogin, ReturnType<typeof openTokens>>()

/** One for all connections of a process's thread. */
export function tokensOf(login: OauthLogin): ReturnType<typeof openTokens> {
  const tokens = opened.get(login) ?? openTokens(login)
  opened.set(login, tokens)
  return tokens
}

/** kafkajs's own takes an answer that refuses the token for success. */
async function logInByToken(login: OauthLogin, { saslAuthenticate }: AuthenticationProviderArgs): Promise<void> {
  const tokens = tokensOf(login)
  const value = await tokens.get().catch((error: Error) => {
    throw new kafkajs.KafkaJSConnectionError(error.message)
  })
  const read = { decode: (raw: Buffer) => raw, parse: (bytes: Buffer) => bytes.subarray(4).toString() } // behind its length
  try {
    const problem = await saslAuthenticate({ request: await bearer.request({}, { value }), response: read })
    // The broker waits for a word before it refuses (RFC 7628, 3.2.3).
    if (problem) await saslAuthenticate({ request: { encode: () => Buffer.from([0, 0, 0, 1, 1]) } })
    if (problem) throw Object.assign(new Error(problem), { type: '' })
  } catch (error) {
    tokens.forget(value)
    if (!isRefusal(error)) throw error
    throw loginFault(
      `Kafka refuses the token for ${login.clientId} (${(error as Error).message}): see WEIR_KAFKA_OAUTH_CLIENT_ID and WEIR_KAFKA_OAUTH_SCOPE`,
    )
  }
}

/** What cannot be read now may be readable at the next attempt. */
function readNow<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new kafkajs.KafkaJSConnectionError((error as Error).message)
  }
}

/**
 * kafkajs's way to log in, with the password or token as it is at each login. `onTrouble` gets the sentence that names
 * what to look at: kafkajs logs it at some of its connections only.
 */
export function mechanismOf(
  login: NonNullable<KafkaSecurity['sasl']>,
  onTrouble: (message: string) => void = () => undefined,
): Mechanism {
  return {
    mechanism: login.mechanism,
    authenticationProvider: (args) => ({
      authenticate: () =>
        (login.mechanism === 'OAUTHBEARER' ? logInByToken(login, args) : logIn(login, args)).catch((error: Error) => {
          onTrouble(error.message)
          throw error
        }),
    }),
  }
}
