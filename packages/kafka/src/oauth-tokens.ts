import { readSecret } from '@weir/runtime/secret.ts'
import type { OauthLogin } from './security.ts'

/** Tokens of one client, as long as they are good. */
export interface Tokens {
  /** Rejects with a sentence that names the variables to look at. */
  get(): Promise<string>
  /** Kafka has refused it: the next one is asked for. */
  forget(token: string): void
}

/** Somebody waits for a connection meanwhile. */
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

function openTokens(login: OauthLogin): Tokens {
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
    get() {
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
    forget(token) {
      if (kept?.text === token) kept = undefined
    },
  }
}

const opened = new WeakMap<OauthLogin, Tokens>()

/** One for all connections of a process's thread. */
export function tokensOf(login: OauthLogin): Tokens {
  const tokens = opened.get(login) ?? openTokens(login)
  opened.set(login, tokens)
  return tokens
}
