import fastify from 'fastify'
import { expect, test } from 'vitest'
import { registerPage } from './serve-page.ts'

/** What a first visit may load, compressed. */
const bytesMax = 100_000

test('every path is the one document, whose three files are there, compressed, of their types, and small', async () => {
  const app = fastify()
  registerPage(app)
  const { body, headers } = await app.inject('/decisions/01a20287-6fb6-7000-8000-000000000000')
  expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'; /)
  const paths = [...new Set([...body.matchAll(/"(\/app\/[^"]+)"/g)].map(([, path = '']) => path))]
  expect(paths.map((path) => path.slice(path.lastIndexOf('/') + 1)).toSorted()).toEqual([
    'icon.svg',
    'main.js',
    'style.css',
  ])
  let bytes = body.length
  for (const url of paths) {
    const file = await app.inject({ url, headers: { 'accept-encoding': 'gzip' } })
    expect([url, file.statusCode, file.headers['content-encoding']]).toEqual([url, 200, 'gzip'])
    expect(file.headers['content-type']).toMatch(/^(?:text\/(?:javascript|css)|image\/svg)/)
    bytes += file.rawPayload.length
  }
  expect(bytes).toBeLessThan(bytesMax)
  expect((await app.inject('/app/0/main.ts')).statusCode).toBe(404)
  const nowhere = await app.inject({ url: '/nowhere', headers: { accept: 'text/html,*/*' } })
  expect([nowhere.statusCode, nowhere.body]).toEqual([404, body])
  expect((await app.inject({ url: '/nowhere' })).headers['content-type']).toMatch(/json/)
})
