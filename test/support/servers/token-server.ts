import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { unsecuredToken } from './secure-kafka.ts'

/**
 * Gives out tokens by the client credentials grant, for any secret but `wrong`; each is valid for `seconds` seconds.
 */
export async function startTokenServer(user: string, seconds: number) {
  const asked: { readonly authorization: string | undefined; readonly body: string }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    asked.push({ authorization: request.headers.authorization, body })
    const isWrong = Buffer.from(request.headers.authorization?.slice(6) ?? '', 'base64')
      .toString()
      .endsWith(':wrong')
    response.writeHead(isWrong ? 401 : 200, { 'content-type': 'application/json' })
    const token = { access_token: unsecuredToken(user, seconds), token_type: 'Bearer', expires_in: seconds }
    response.end(JSON.stringify(isWrong ? { error: 'invalid_client' } : token))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    asked,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
