import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, test } from 'vitest'
import { openIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { megabyte, streamOf } from './megabytes.ts'

/** 2 GiB: more than a signed 32-bit number counts, and more than a process that kept it could hide. */
const bytes = 2 * 1_024 * megabyte
/** Buffers of sockets and streams, and what the garbage collector has not taken back yet. */
const growthMax = 100 * megabyte
const key = 'gigabyte-key'

const upstream = spawnBound([process.execPath, resolve(import.meta.dirname, 'gigabyte-upstream.ts')], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
let said = ''
upstream.stdout?.on('data', (chunk: Buffer) => {
  said += chunk.toString()
})
await waitUntil(() => said.includes('\n'), { deadlineMs: 60_000 })
const policy = {
  version: 1,
  plans: { free: { limits: [] } },
  limits: {},
  routes: [],
  upstreams: { big: { url: `http://127.0.0.1:${said.trim()}` } },
  subjects: { acme: { plan: 'free', keys: [{ sha256: sha256(key) }] } },
}
const stack = await forFile(openIngressStack(policy))
const ingress = await stack.start()
afterAll(() => void upstream.kill())

/** Resident memory of the ingress, from the kernel. */
function residentBytes(): number {
  const status = readFileSync(`/proc/${ingress.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1_024
}

/** The most that the ingress grows by while `work` runs. */
async function growthDuring<T>(work: Promise<T>): Promise<{ readonly result: T; readonly grown: number }> {
  const before = residentBytes()
  let most = before
  const watching = setInterval(() => {
    most = Math.max(most, residentBytes())
  }, 100)
  const result = await work.finally(() => clearInterval(watching))
  return { result, grown: most - before }
}

const headers = { 'x-api-key': key }

async function download(size: number): Promise<number> {
  const sent = request(`${ingress.proxy}/${size}`, { headers, agent: false }).end()
  const answer = await new Promise<import('node:http').IncomingMessage>((done, fail) => {
    sent.on('response', done).on('error', fail)
  })
  let received = 0
  for await (const chunk of answer) received += (chunk as Buffer).length
  return received
}

async function upload(size: number): Promise<string> {
  const sent = request(`${ingress.proxy}/`, { method: 'PUT', headers, agent: false })
  const answered = new Promise<string>((done, fail) => {
    sent.on('error', fail).on('response', (answer) => {
      let body = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      answer.on('end', () => done(body))
    })
  })
  await pipeline(streamOf(size), sent)
  return answered
}

test('a download of 2 GiB passes through without being kept: memory stays flat', async () => {
  expect(await download(64 * megabyte)).toBe(64 * megabyte)
  const { result, grown } = await growthDuring(download(bytes))
  process.stdout.write(`2 GiB down: the ingress grew by ${Math.round(grown / megabyte)} MB\n`)
  expect(result).toBe(bytes)
  expect(grown).toBeLessThan(growthMax)
}, 300_000)

test('an upload of 2 GiB passes through without being kept: memory stays flat', async () => {
  expect(await upload(64 * megabyte)).toBe(`${64 * megabyte}`)
  const { result, grown } = await growthDuring(upload(bytes))
  process.stdout.write(`2 GiB up: the ingress grew by ${Math.round(grown / megabyte)} MB\n`)
  expect(result).toBe(`${bytes}`)
  expect(grown).toBeLessThan(growthMax)
}, 300_000)
