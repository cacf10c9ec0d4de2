import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { installClient } from '../../support/client/install-client.ts'
import { forFile } from '../../support/opened.ts'

const run = promisify(execFile)
const tsc = resolve(import.meta.dirname, '../../../node_modules/typescript/bin/tsc')

const client = await forFile(installClient())

const names = [
  'WeirClientError',
  'callerKey',
  'createClient',
  'createLimitedFetch',
  'refusalOf',
  'weirExpress',
  'weirFastify',
]
const consumers = {
  'consumer.mjs': `import * as weir from '@weir/client'\nprocess.stdout.write(Object.keys(weir).sort().join())\n`,
  'consumer.cjs': `const weir = require('@weir/client')\nprocess.stdout.write(Object.keys(weir).sort().join())\n`,
}

test.each(Object.entries(consumers))('what was packed is imported by %s, whole', async (file, text) => {
  await writeFile(join(client.dir, file), text)
  const { stdout } = await run(process.execPath, [join(client.dir, file)])
  expect(stdout).toBe(names.toSorted().join())
})

/** Uses every entry as a consumer would, with the types of the frameworks where they are known. */
const typed = `
import { createClient, createLimitedFetch, weirExpress, weirFastify, WeirClientError, type CheckResult, type WithWeir } from '@weir/client'
import express = require('express')
import fastify = require('fastify')
const client = createClient({ url: 'http://127.0.0.1:8081', key: 'k', onUnavailable: 'deny' })
const app = fastify.fastify()
void app.register(weirFastify, { client, hook: 'preHandler', ask: (request: fastify.FastifyRequest) => ({ route: request.routeOptions.url, cost: 2, wait: '5s' }) })
app.get('/', async (request: fastify.FastifyRequest & WithWeir) => request.weir?.limits[0]?.remaining)
express().use(weirExpress({ client, ask: (request: express.Request) => ({ ip: request.ip }) }))
const limitedFetch: typeof fetch = createLimitedFetch({ client, mode: 'throw', cost: (input) => String(input).length })
export const found: Promise<CheckResult> = client.check({ idempotencyKey: 'k' })
export const code = (error: WeirClientError): 'refused' | undefined => error.code === 'refused' ? error.code : undefined
void limitedFetch('http://127.0.0.1')
// @ts-expect-error
void client.check({ rout: '/' })
`
const asModule = typed.replace(/import (\w+) = require\('(\w+)'\)/g, (_, name, from) =>
  from === 'express' ? `import ${name} from '${from}'` : `import * as ${name} from '${from}'`,
)

test.each([
  ['an ES module', 'typed.mts', asModule],
  ['CommonJS', 'typed.cts', typed],
])('its types serve %s', async (_, file, text) => {
  await writeFile(join(client.dir, file), text)
  const options = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2024']
  const { stdout } = await run(
    process.execPath,
    [tsc, ...options, '--skipLibCheck', '--types', 'node', join(client.dir, file)],
    { cwd: client.dir },
  ).catch((error: { stdout: string }) => error)
  expect(stdout).toBe('')
})

test('it depends on undici alone, has a licence, and nothing in it names a source or a test', async () => {
  const installed = join(client.dir, 'node_modules/@weir/client')
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  expect(Object.keys(manifest.dependencies)).toEqual(['undici'])
  expect(await readdir(installed)).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'dist', 'examples']))
  const built = await readdir(join(installed, 'dist'), { recursive: true })
  expect(built.filter((name) => /test|src|(?<!\.d)\.ts$/.test(name))).toEqual([])
  for (const name of built.filter((one) => /\.(js|d\.ts)$/.test(one))) {
    const text = await readFile(join(installed, 'dist', name), 'utf8')
    expect([name, /(?:from |require\()['"][^'"]*\.ts['"]/.exec(text)?.[0]]).toEqual([name, undefined])
  }
})
