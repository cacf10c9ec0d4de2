import { connect, createServer } from 'node:net'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { expect, test } from 'vitest'
import { openLiveConsole } from '../../support/decisions/live-console.ts'
import { hear } from '../../support/hear.ts'
import { listen } from '../../support/listen.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

const live = await forFile(openLiveConsole())
const desk = live.desk

const ids: Record<string, string> = {}
/** A decision that only Kafka has, only the tables have, or both. */
async function decide(name: string, where: 'kafka' | 'tables' | 'both', more: object = {}): Promise<void> {
  ids[await live.decide(where, more)] = name
}

/** Stands before the console and notices once it is asked for a list: then the stream is followed. */
async function openDoor() {
  const { hostname, port } = new URL(desk.environment.WEIR_CONSOLE_URL)
  const door = { isAsked: false, url: '', close: () => server.close() }
  const server = createServer((from) => {
    const to = connect(Number(port), hostname)
    from.on('data', (data) => (door.isAsked ||= data.includes('GET /v1/decisions?')))
    for (const one of [from, to]) one.on('error', () => [from, to].map((other) => other.destroy()))
    from.pipe(to).pipe(from)
  })
  door.url = `http://127.0.0.1:${await listen(server)}`
  return door
}

test('weir tail prints what was before and what comes, each once, also over a restart of the console', async () => {
  await decide('before', 'tables')
  await decide('allowed', 'tables', { outcome: 'allow', reason: 'ok', denied_by: '' })
  const args = ['tail', '--denied', '--since', '5m']
  const door = await openDoor()
  const env = { ...process.env, ...desk.environment, WEIR_CONSOLE_URL: door.url }
  const child = spawnBound(['./weir', ...args], { env, stdio: 'pipe' })
  const heard = hear(child)
  const names = () =>
    heard.stdout
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => ids[line.split(' ').at(-1) ?? ''])
  const printed = async (name: string) => await until(() => names().includes(name), 30_000)
  try {
    await until(() => door.isAsked, 30_000)
    // While the tables are behind: it comes by both ways.
    await decide('both', 'both')
    await live.mark()
    await printed('both')
    await decide('live', 'kafka')
    await printed('live')
    await decide('not refused', 'kafka', { outcome: 'allow', reason: 'ok', denied_by: '' })
    await decide('hostile', 'kafka', { subject: 'acme\u001b[31m\u202e', count: 3 })
    await printed('hostile')
    await desk.kill()
    await desk.restart()
    const goesOn = async () => {
      await decide('later', 'kafka')
      return names().includes('later')
    }
    await until(goesOn, 30_000)
    expect(names().slice(0, 4)).toEqual(['before', 'both', 'live', 'hostile'])
    expect(new Set(heard.stdout.split('\n')).size).toBe(heard.stdout.split('\n').length)
    const line = heard.stdout.split('\n').find((one) => one.includes('×3'))
    expect(line).toMatch(/^\d\d:\d\d:\d\d\.\d{3} ✕ acme\\u001b\[31m\\u202e POST \/v1\/search 5 minute 98\/100 ×3 /)
    expect(heard.stderr).toContain('reconnecting in')
    expect(heard.stdout).toContain('# decisions are missing here')
  } finally {
    child.kill('SIGTERM')
    await heard.ended
    door.close()
  }
})

test('with --no-follow it prints what was before, as objects with --json', async () => {
  const { code, stdout } = await runWeir(['tail', '--no-follow', '--subject', 'acme', '--json'], desk.environment)
  const found = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect([code, found.map(({ id }) => ids[id])]).toEqual([0, ['before', 'allowed', 'both']])
  const wrong = await runWeir(['tail', '--no-follow', '--since', 'long'], desk.environment)
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--since')])
})

test('weir tail ends without a word when its reader has read enough', async () => {
  const script = `{ ./weir tail --json --subject pipe; echo "ended with $?" >&2; } | head -n 2`
  const child = spawnBound(['bash', '-c', script], { env: { ...process.env, ...desk.environment }, stdio: 'pipe' })
  const heard = hear(child)
  const hasEnded = async () => {
    await decide('piped', 'kafka', { subject: 'pipe' })
    return heard.stderr.includes('\n')
  }
  await until(hasEnded, 30_000)
  expect(heard.stderr).toBe('ended with 141\n')
})
