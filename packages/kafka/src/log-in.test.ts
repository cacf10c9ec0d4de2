import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuthenticationProviderArgs } from 'kafkajs'
import { expect, it, onTestFinished, vi } from 'vitest'
import { mechanismOf, tokensOf } from './log-in.ts'

async function openTokens(answer: (response: ServerResponse, asked: number) => void) {
  let asked = 0
  const server = createServer((_, response) => {
    asked += 1
    answer(response, asked)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const tokenUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const clientSecret = { variable: 'WEIR_KAFKA_OAUTH_CLIENT_SECRET', file: undefined, text: 'hidden' }
  return tokensOf({ mechanism: 'OAUTHBEARER', tokenUrl, clientId: 'c', clientSecret, scope: '' })
}

it('A token is requested once for connections that are made together, again when a fifth of its time is left, and after Kafka has refused it', async () => {
  const tokens = await openTokens((response, asked) =>
    response.end(JSON.stringify({ access_token: `token-${asked}`, expires_in: 100 })),
  )
  expect(await Promise.all([tokens.get(), tokens.get()])).toEqual(['token-1', 'token-1'])
  const startMs = performance.now()
  const clock = vi.spyOn(performance, 'now').mockReturnValue(startMs + 79_000)
  onTestFinished(() => clock.mockRestore())
  expect(await tokens.get()).toBe('token-1')
  clock.mockReturnValue(startMs + 81_000)
  expect(await tokens.get()).toBe('token-2')
  tokens.forget('token-1') // another connection's, long replaced
  expect(await tokens.get()).toBe('token-2')
  tokens.forget('token-2')
  expect(await tokens.get()).toBe('token-3')
})

it.for<[string, (response: ServerResponse) => void, RegExp]>([
  ['no token', (response) => response.end('{"expires_in":1}'), /it answers without access_token$/],
  [
    'a token with a line feed',
    (response) => response.end('{"access_token":"a\\nb"}'),
    /it answers without access_token$/,
  ],
  ['no JSON', (response) => response.end('<html>'), /it answers without access_token$/],
  ['more than a token has', (response) => response.end('x'.repeat(300_000)), /it answers with more than 262144 bytes$/],
  ['another address', (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), /redirect/],
  [
    'the secret in its error',
    (response) => response.writeHead(401).end('{"error":"no client has hidden"}'),
    /it answers 401; see WEIR_KAFKA_OAUTH_CLIENT_ID and WEIR_KAFKA_OAUTH_CLIENT_SECRET$/,
  ],
  [
    'an error by its code',
    (response) => response.writeHead(401).end('{"error":"invalid_client"}'),
    /it answers 401 invalid_client; see/,
  ],
  ['a broken connection', (response) => response.destroy(), /fetch failed: /],
])('a server that answers with %s is named by its variable, and asked again', async ([, answer, reason]) => {
  let isRight = false
  const tokens = await openTokens((response) => (isRight ? response.end('{"access_token":"t"}') : answer(response)))
  const error = await tokens.get().catch((fault: Error) => fault.message)
  expect(error).toMatch(/^no token for Kafka from WEIR_KAFKA_OAUTH_TOKEN_URL: /)
  expect(error).toMatch(reason)
  isRight = true
  expect(await tokens.get()).toBe('t')
})

it('A refused login is reported with the variable that holds the password, whichever connection makes it', async () => {
  const password = { variable: 'WEIR_KAFKA_SASL_PASSWORD', file: undefined, text: 'hidden' }
  const troubles: string[] = []
  const login = mechanismOf(
    { mechanism: 'PLAIN', username: 'weir', password },
    (message) => void troubles.push(message),
  )
  const saslAuthenticate = () => Promise.reject(Object.assign(new Error('no'), { type: 'SASL_AUTHENTICATION_FAILED' }))
  const logger = { debug: () => undefined, error: () => undefined }
  const args = { host: '', port: 0, logger, saslAuthenticate } as unknown as AuthenticationProviderArgs
  await expect(login.authenticationProvider(args).authenticate()).rejects.toThrow(troubles[0])
  expect(troubles).toEqual([expect.stringMatching(/^Kafka refuses the user weir .*: see WEIR_KAFKA_SASL_PASSWORD$/)])
})
