import fastify from 'fastify'
import { expect, test } from 'vitest'
import { registerPage } from './serve-page.ts'

/** What a first visit may load, compressed. */
const bytesMax = 200_000

test('every path is the one document, whose files are there, compressed, of their types, and few', async () => {
  const app = fastify()
  registerPage(app)
  const { body, headers } = await app.inject('/decisions/01a20287-6fb6-7000-8000-000000000000')
  expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self' 'sha256-[\w+/=]{44}'; /)
  const paths = [...new Set([...body.matchAll(/"(\/app\/[^"]+)"/g)].map(([, path = '']) => path))]
  expect(paths.length).toBeGreaterThan(20)
  let bytes = body.length
  for (const url of paths) {
    const file = await app.inject({ url, headers: { 'accept-encoding': 'gzip' } })
    expect([url, file.statusCode, file.headers['content-encoding']]).toEqual([url, 200, 'gzip'])
    expect(file.headers['content-type']).toMatch(/^(?:text\/(?:javascript|css)|image\/svg)/)
    bytes += file.rawPayload.length
  }
  expect(bytes).toBeLessThan(bytesMax)
  expect((await app.inject('/app/0/main.ts')).statusCode).toBe(404)
})
