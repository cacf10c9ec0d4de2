import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose'
import { listenForTest } from '../../support/listen.ts'

/** How the issuer answers when it is asked for its keys. */
export type Behaviour = 'keys' | 'down' | 'redirect' | 'hang' | 'silent' | 'huge'

export interface TokenParts {
  readonly claims?: JWTPayload
  readonly header?: Partial<JWTHeaderParameters>
  /** Other than the issuer's newest. */
  readonly key?: CryptoKey | Uint8Array
}

const megabyte = Buffer.alloc(1_048_576, ' ')

/** Writes 100 MB as fast as they are taken. */
async function sendMuch(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' })
  for (let n = 0; n < 100 && !response.destroyed; n += 1) {
    if (!response.write(megabyte)) await Promise.race([once(response, 'drain'), once(response, 'close')])
  }
  response.end()
}

/** An issuer of tokens with a real HTTP server for its keys. */
export async function openIssuer() {
  const state = { behaviour: 'keys' as Behaviour, asked: 0, connections: 0, bytesSent: 0 }
  const unanswered: ServerResponse[] = []
  const keys: JWK[] = []
  let newest: { readonly kid: string; readonly privateKey: CryptoKey; readonly publicKey: CryptoKey } | undefined

  const server = createServer(async (request, response) => {
    // Who follows a redirect finds keys, and a test that sees the token accepted fails.
    if (request.url === '/elsewhere') return void response.end(JSON.stringify({ keys }))
    state.asked += 1
    switch (state.behaviour) {
      case 'keys':
        return void response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }))
      case 'down':
        return void response.writeHead(503).end()
      case 'redirect':
        return void response.writeHead(302, { location: `http://127.0.0.1:${port}/elsewhere` }).end()
      case 'huge':
        await sendMuch(response)
        state.bytesSent = request.socket.bytesWritten
        return
      case 'silent':
        unanswered.push(response)
        return
      case 'hang':
        response.writeHead(200).write('{')
    }
  })
  server.on('connection', () => {
    state.connections += 1
  })
  const port = await listenForTest(server)

  /** A new key; those before stay unless they are withdrawn. */
  const rotate = async ({ withdraw = false } = {}) => {
    const pair = await generateKeyPair('RS256')
    const kid = `key ${keys.length + state.asked}`
    if (withdraw) keys.length = 0
    keys.push({ ...(await exportJWK(pair.publicKey)), kid, alg: 'RS256', use: 'sig' })
    newest = { kid, ...pair }
    return newest
  }
  await rotate()

  const url = `http://127.0.0.1:${port}`
  return {
    state,
    keys,
    rotate,
    url,
    port,
    jwksUrl: `${url}/keys`,
    /** Answers the callers that waited while it was silent. */
    answerLate: () => {
      for (const response of unanswered.splice(0)) response.end(JSON.stringify({ keys }))
    },
    publicKey: () => newest?.publicKey,
    /** A token that is right for `acme`, audience `api`, for an hour; but for what is given. */
    async token(nowMs: number, { claims = {}, header = {}, key }: TokenParts = {}): Promise<string> {
      const nowS = Math.floor(nowMs / 1_000)
      const body = { iss: url, aud: 'api', sub: 'acme', iat: nowS, exp: nowS + 3_600, ...claims }
      const signingKey = key ?? newest?.privateKey
      if (signingKey === undefined) throw new Error('the issuer has no key')
      return new SignJWT(body).setProtectedHeader({ alg: 'RS256', kid: newest?.kid ?? '', ...header }).sign(signingKey)
    },
  }
}

export type Issuer = Awaited<ReturnType<typeof openIssuer>>
