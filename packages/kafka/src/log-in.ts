import { createRequire } from 'node:module'
import { readSecret } from '@weir/runtime/secret.ts'
import type { AuthenticationProviderArgs, Authenticator, Mechanism } from 'kafkajs'
import { tokensOf } from './oauth-tokens.ts'
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

/** kafkajs's way to log in, with the password or token as it is at each login. */
export function mechanismOf(login: NonNullable<KafkaSecurity['sasl']>): Mechanism {
  return {
    mechanism: login.mechanism,
    authenticationProvider: (args) => ({
      authenticate: () => (login.mechanism === 'OAUTHBEARER' ? logInByToken(login, args) : logIn(login, args)),
    }),
  }
}
