import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { askConsole, findConsole, requireConsole } from './console-client.ts'

/** A console that answers so; gives its address. */
async function consoleThat(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

const problem = (status: number, body: object) => (_: IncomingMessage, response: ServerResponse) => {
  response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(body))
}

async function failure(url: string): Promise<WeirError> {
  const error: unknown = await askConsole({ url, token: 'secret' }, { path: '/v1/policy' }).catch((one: unknown) => one)
  if (!(error instanceof WeirError)) throw new Error('it was answered')
  return error
}

describe('askConsole', () => {
  it('names the address that does not answer, and never the token', async () => {
    const { code, message } = await failure('http://127.0.0.1:9')
    expect([code, message]).toEqual(['CONSOLE_UNAVAILABLE', expect.stringContaining('http://127.0.0.1:9')])
    expect(message).not.toContain('secret')
  })

  it.each([
    [401, {}, 'CONSOLE_REFUSED', 'WEIR_ADMIN_TOKEN'],
    [403, { detail: 'lacks the scope keys' }, 'CONSOLE_REFUSED', 'scope keys'],
    [404, { detail: 'did you mean acme?' }, 'COMMAND_INVALID', 'acme'],
    [412, { detail: 'Somebody has changed it' }, 'CONSOLE_REFUSED', 'Somebody'],
    [503, { detail: 'Kafka is away' }, 'CONSOLE_UNAVAILABLE', 'Kafka is away'],
  ])('tells what a %i means', async (status, body, code, words) => {
    const error = await failure(await consoleThat(problem(status, body)))
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(words)])
  })

  it('lists everything that is wrong with a policy, with its place', async () => {
    const problems = [
      { path: 'limits.minute.size', message: 'must be more', line: 4, column: 9 },
      { path: '', message: 'needs a plan' },
    ]
    const { code, message } = await failure(await consoleThat(problem(422, { detail: '', problems })))
    expect([code, message.split('\n').slice(1)]).toEqual([
      'POLICY_INVALID',
      ['  4:9  limits.minute.size: must be more', '  needs a plan'],
    ])
  })

  it.each([
    [5_000, '0.1', 3],
    [0, '0.1', 1],
    [5_000, '10', 1],
    [5_000, undefined, 1],
  ])('within %i ms asks again what comes after %s s: %i questions', async (comesWithinMs, after, questions) => {
    let asked = 0
    const url = await consoleThat((_, response) => {
      asked += 1
      const headers = after === undefined ? {} : { 'retry-after': after }
      if (asked === 3) response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      else
        response.writeHead(404, { ...headers, 'content-type': 'application/problem+json' }).end('{"detail":"not yet"}')
    })
    const answer = askConsole({ url, token: 'secret' }, { path: '/', comesWithinMs })
    if (questions === 3) expect(await answer).toMatchObject({ body: {} })
    else await expect(answer).rejects.toThrow('not yet')
    expect(asked).toBe(questions)
  })

  it('never takes the token to another address', async () => {
    const seen: (string | undefined)[] = []
    const other = await consoleThat(({ headers }, response) => {
      seen.push(headers.authorization)
      response.end('{}')
    })
    const { code } = await failure(
      await consoleThat((_, response) => response.writeHead(307, { location: other }).end()),
    )
    expect([code, seen]).toEqual(['CONSOLE_UNAVAILABLE', []])
  })
})

describe('the console', () => {
  it('is the one that the environment names', () => {
    const environment = { WEIR_CONSOLE_URL: 'http://c:1', WEIR_ADMIN_TOKEN: 't' }
    expect(findConsole(environment, '/nowhere')).toEqual({ url: 'http://c:1', token: 't' })
    expect(findConsole({ WEIR_CONSOLE_URL: 'http://c:1' }, '/nowhere')).toBeUndefined()
  })

  it("is asked with the token of a file where WEIR_ADMIN_TOKEN's file is named, which must be readable", () => {
    const dir = mkdtempSync(join(tmpdir(), 'weir-token-'))
    onTestFinished(() => rmSync(dir, { recursive: true }))
    const environment = { WEIR_CONSOLE_URL: 'http://c:1', WEIR_ADMIN_TOKEN_FILE: join(dir, 'token') }
    expect(() => findConsole(environment, '/nowhere')).toThrow('WEIR_ADMIN_TOKEN_FILE names a file that cannot be read')
    writeFileSync(environment.WEIR_ADMIN_TOKEN_FILE, 't\n')
    expect(findConsole(environment, '/nowhere')).toEqual({ url: 'http://c:1', token: 't' })
    const { WEIR_ADMIN_TOKEN_FILE } = environment
    expect(() => requireConsole({ WEIR_ADMIN_TOKEN_FILE }, '/nowhere')).toThrow(/: WEIR_CONSOLE_URL not set/)
  })

  it('that is not named or misnamed is an error that names the variables to set', () => {
    expect(() => requireConsole({ WEIR_ADMIN_TOKEN: 't' }, '/nowhere')).toThrow(/WEIR_CONSOLE_URL not set.*--data/)
    expect(() => requireConsole({ WEIR_CONSOLE_URL: 'c:1', WEIR_ADMIN_TOKEN: 't' }, '/nowhere')).toThrow(/http:\/\//)
  })
})
