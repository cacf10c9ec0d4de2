import { readdir } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, test } from 'vitest'
import { listen } from '../support/listen.ts'
import { folderForFile } from '../support/opened.ts'
import { until } from '../support/until.ts'
import { runWeir } from '../support/weir-up.ts'

/** What a console answers; nothing, for as long as it is undefined. */
let respond: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
let asked = 0
const server = createServer((request, response) => {
  asked += 1
  respond?.(request, response)
})
const environment = { WEIR_CONSOLE_URL: `http://127.0.0.1:${await listen(server)}`, WEIR_ADMIN_TOKEN: 'weir_token' }
const dir = await folderForFile('command-line')
afterAll(async () => {
  server.closeAllConnections()
  server.close()
})

/** The commands below one, by its help; none of a command that does something itself. */
async function commandsBelow(parent: readonly string[]): Promise<readonly (readonly string[])[]> {
  const { code, stdout } = await runWeir([...parent, '--help'])
  expect([parent, code]).toEqual([parent, 0])
  const [, listed = ''] = stdout.split('Commands:\n')
  const names = Array.from(listed.matchAll(/^ {2}([a-z][a-z-]*)/gm), ([, name = '']) => name)
  return names.filter((name) => name !== 'help').map((name) => [...parent, name])
}

/** Calls `run` for each, four at a time. */
async function forEach<T>(all: readonly T[], run: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all]
  const work = async () => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) await run(next)
  }
  await Promise.all(Array.from({ length: 4 }, work))
}

test('what is mistyped ends every command with exit code 2, and help with 0', async () => {
  const first = await commandsBelow([])
  expect(first.length).toBeGreaterThan(20)
  const groups: (readonly string[])[] = []
  const commands: (readonly string[])[] = []
  await forEach(first, async (one) => {
    const below = await commandsBelow(one)
    if (below.length > 0) groups.push(one)
    commands.push(...(below.length === 0 ? [one] : below))
  })
  expect(commands.length).toBeGreaterThan(40)
  const mistyped = [...commands, ...groups, []].map((one) => [...one, '--no-such-option'])
  const others = [['no-such-command'], ['keys', 'no-such'], ['keys', 'create'], ['keys'], ['usage', '--limit', 'many']]
  await forEach([...mistyped, ...others], async (args) => {
    const { code, stdout, stderr } = await runWeir(args, environment)
    expect([args, code, stdout, stderr.length > 0]).toEqual([args, 2, '', true])
  })
  expect(asked).toBe(0)
}, 120_000)

const download = ['usage', '--format', 'csv', '--output', 'usage.csv']
test.each([
  ['SIGINT', 130, ['usage']],
  ['SIGINT', 130, ['status']],
  ['SIGINT', 130, ['keys', 'list']],
  ['SIGINT', 130, ['why', '01a1fdfa-6d10-7540-81b4-576e9d55a36f']],
  ['SIGINT', 130, ['usage', 'export', '--from', '2026-11-01']],
  ['SIGINT', 130, ['tail']],
  ['SIGINT', 130, download],
  ['SIGTERM', 143, ['usage']],
  ['SIGTERM', 143, ['tail']],
] as const)('%s ends a command that waits for the console with %i: %j', async (signal, code, args) => {
  respond = undefined
  const before = asked
  const child = spawnBound([join(projectRoot, 'weir'), ...args, ...(args === download ? [] : ['--json'])], {
    env: { ...process.env, ...environment, INIT_CWD: dir },
    stdio: 'pipe',
  })
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  await until(() => asked > before, 20_000)
  child.kill(signal)
  expect(await Promise.race([ended, waitUntil(() => false, { deadlineMs: 10_000 })])).toBe(code)
  expect(await readdir(dir)).toEqual([])
})

const json = { 'content-type': 'application/json' }
test.each([
  ['/v1/decisions?', ['tail', '--since', '5m']],
  ['/v1/alerts/x', ['alerts', 'test-endpoint', 'ops']],
] as const)('Ctrl-C ends a command that waits for %s after the console has answered before: %j', async (path, args) => {
  let isWaiting = false
  respond = ({ url = '', method }, response) => {
    if (url.startsWith('/v1/decisions/stream')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': following\n\n')
    } else if (method === 'POST') response.writeHead(202, json).end('{"id":"x"}')
    else isWaiting = url.startsWith(path)
  }
  const child = spawnBound([join(projectRoot, 'weir'), ...args], {
    env: { ...process.env, ...environment },
    stdio: 'pipe',
  })
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  await until(() => isWaiting, 20_000)
  child.kill('SIGINT')
  expect(await Promise.race([ended, waitUntil(() => false, { deadlineMs: 10_000 })])).toBe(130)
})

const evil = 'a\u001b[31m\u009b\u202eb\u2028\ud83d\u{e0001}\nc'
const escaped = 'a\\u001b[31m\\u009b\\u202eb\\u2028\\ud83d\\udb40\\udc01\\nc'.replace('\\n', '\\u000a')
const bodies: Readonly<Record<string, unknown>> = {
  '/v1/usage': {
    step: 'total',
    complete_through: null,
    silent: [],
    gaps: [],
    next: null,
    rows: [{ subject: evil, count: '1', denied: '0', cost: '1' }],
    totals: { count: '1', denied: '0', cost: '1' },
  },
  '/v1/keys': { items: [{ id: evil, subject: evil, expires: null, prefix: evil, created: null }], next: null },
  '/v1/changes': {
    items: [{ id: 'x', at: 't', by: evil, total: 1, summary: [{ what: 'put', kind: 'plan', name: evil }] }],
    next: null,
  },
}

test('what callers have written is harmless to a terminal, and JSON says the same as ever', async () => {
  respond = ({ url = '' }, response) => {
    const { pathname } = new URL(url, 'http://x')
    response.writeHead(200, json).end(JSON.stringify(bodies[pathname]))
  }
  const harmful = /[^\P{C}\n]/u
  for (const args of [['usage', '--by', 'subject'], ['keys', 'list'], ['changes']]) {
    const [people, json] = await Promise.all([runWeir(args, environment), runWeir([...args, '--json'], environment)])
    expect([args, people.code, people.stderr]).toEqual([args, 0, expect.not.stringMatching(harmful)])
    expect(people.stdout).toContain(escaped)
    expect(people.stdout).not.toMatch(harmful)
    expect(JSON.stringify(JSON.parse(json.stdout))).toContain(JSON.stringify(evil).slice(1, -1))
  }
  respond = (_, response) => {
    const problem = JSON.stringify({ type: 'about:blank', status: 404, detail: evil })
    response.writeHead(404, { 'content-type': 'application/problem+json' }).end(problem)
  }
  const { code, stderr } = await runWeir(['changes'], environment)
  expect([code, stderr]).toEqual([2, expect.not.stringMatching(harmful)])
})
