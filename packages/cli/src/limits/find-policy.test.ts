import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { noProgress } from '../terminal/progress.ts'
import { findDefinitions, findPolicy } from './find-policy.ts'

/** What a console shows to a token that may not see hashes. */
const written = {
  version: 1,
  plans: { free: { limits: [] } },
  subjects: { acme: { plan: 'free', keys: [{ id: 'acme-1' }] } },
  tokens: { reader: { scopes: ['read'] } },
}

test('A token that may not see hashes is enough to explain and to look at limits', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(written))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  const ignore = () => undefined
  const environment = { WEIR_CONSOLE_URL: url, WEIR_ADMIN_TOKEN: 'a reader' }
  const context = {
    environment,
    cwd: '',
    print: ignore,
    report: ignore,
    signal: new AbortController().signal,
    progress: noProgress,
  }
  const found = await findPolicy({ subject: 'acme', data: '', json: false }, context)
  expect(found.policy.subjects.get('acme')?.plan.name).toBe('free')
  expect([...(await findDefinitions({ data: '', json: false }, context)).policy.plans.keys()]).toEqual(['free'])
})
