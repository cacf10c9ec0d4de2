import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { untilAvailable } from '../until-available.ts'
import { weirUp } from '../weir-up.ts'
import { openBrowser, openWatchedPage, type PageOptions, signIn } from './open-browser.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** A minute would end in the middle of a test. */
const hour = { window: '1h' }
/** Each refuses its subject after three requests; the names are those of subjects, plans and limits alike. */
const kinds = {
  fixed: { algorithm: 'fixed_window', size: 3, ...hour },
  slide: { algorithm: 'sliding_window', size: 3, ...hour },
  log: { algorithm: 'sliding_log', size: 3, ...hour },
  bucket: { algorithm: 'token_bucket', size: 3, ...hour },
  blocking: { algorithm: 'fixed_window', size: 3, ...hour, block: '30m' },
}
const policy = {
  version: 1,
  limits: {
    ...kinds,
    soft: { algorithm: 'fixed_window', size: 3, ...hour, onExceed: 'degrade' },
    large: { algorithm: 'fixed_window', size: 10_000_000, ...hour },
    day: { algorithm: 'fixed_window', size: 50, period: 'day', thresholds: ['80%'] },
  },
  plans: {
    ...Object.fromEntries(Object.keys(kinds).map((name) => [name, { limits: [name] }])),
    heavy: { limits: ['large'] },
    soft: { limits: ['soft'] },
    basic: { limits: ['day'], selfService: true },
  },
  routes: [{ match: 'POST /v1/search', cost: 5 }],
  upstreams: { demo: { url: 'http://127.0.0.1:8070', hosts: ['*'] } },
  subjects: Object.fromEntries(
    [
      ...Object.keys(kinds).map((name) => [name, name]),
      ['heavy', 'heavy'],
      ['soft', 'soft'],
      ['acme', 'basic'],
      ['bolt', 'basic'],
      ['demo', 'basic'],
    ].map(([name = '', plan]) => [name, { plan, keys: [{ sha256: sha256(`${name}-key`) }] }]),
  ),
  tokens: { gateway: { sha256: sha256('gateway-token'), scopes: ['check'] } },
  identity: { unknown: 'basic' },
}

/** A whole Weir with a policy for the page, and a browser. */
export type PageStack = Awaited<ReturnType<typeof startPageStack>>

/** Starts a stack whose policy has these parts as well, and whose processes these variables. */
export async function startPageStack(more: Readonly<Record<string, object>> = {}, env: NodeJS.ProcessEnv = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'weir-test-page-'))
  const both = Object.entries(more).map(([name, part]) => {
    const own = Object.entries(policy).find(([one]) => one === name)?.[1]
    return [name, Array.isArray(own) ? [...own, ...Object.values(part)] : { ...Object(own), ...part }]
  })
  await writeFile(join(dir, 'weir.yaml'), JSON.stringify({ ...policy, ...Object.fromEntries(both) }))
  const [browser, weir] = await Promise.all([openBrowser(), weirUp(['--policy', join(dir, 'weir.yaml')], env)])
  const origin = weir.line.console
  const api = async <T>(request: string, body?: object) => {
    const [method = '', path = ''] = request.split(' ')
    const sent = {
      method,
      headers: {
        authorization: `Bearer ${weir.line.adminToken}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    const answer = await untilAvailable(() => fetch(origin + path, sent))
    if (!answer.ok) throw new Error(`${request}: ${answer.status} ${await answer.text()}`)
    return JSON.parse((await answer.text()) || 'null') as T
  }
  return {
    weir,
    console: origin,
    browser,
    /** Asks the console as its root; what it answers, as JSON. */
    api,
    /** Asks the upstream through the ingress with a subject's key; the answer, read. */
    async ask(subject: string, request: string = 'GET /hello') {
      const [method = '', path = ''] = request.split(' ')
      const answer = await fetch(weir.line.ingress + path, { method, headers: { 'x-api-key': `${subject}-key` } })
      await answer.arrayBuffer()
      return answer
    },
    /** Waits until the console has this many decisions of the subject. */
    async untilCounted(subject: string, count: number) {
      const path = `GET /v1/usage?step=total&subject=${encodeURIComponent(subject)}`
      const isThere = async () => (await api<{ totals: { count: number } }>(path)).totals.count >= count
      if (!(await waitUntil(isThere, { deadlineMs: 20_000 }))) throw new Error(`${subject} has no ${count} decisions`)
    },
    /** A page of a browser of its own, signed in; at `/` if not said otherwise. */
    async open(path: string = '/', token: string = weir.line.adminToken, options: Omit<PageOptions, 'origin'> = {}) {
      const watched = await openWatchedPage(browser, { origin, ...options })
      await signIn(watched.page, origin + path, token)
      return watched
    },
    async close() {
      await browser.close()
      await weir.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** The kinds of limits that refuse the subject of their name. */
export const refusingKinds: readonly string[] = Object.keys(kinds)
