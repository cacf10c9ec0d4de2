import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LiveConsole, openLiveConsole } from '../../support/decisions/live-console.ts'
import { openTerminal } from '../../support/terminal/open-terminal.ts'
import { runWeir } from '../../support/weir-up.ts'

let live: LiveConsole
beforeAll(async () => {
  live = await openLiveConsole()
}, 180_000)
afterAll(() => live?.close())

const weir = join(projectRoot, 'weir')
interface Opened {
  readonly env?: NodeJS.ProcessEnv
  readonly rows?: number
  readonly columns?: number
}
const open = (args: readonly string[], { env = {}, ...size }: Opened = {}) =>
  openTerminal([weir, ...args], { ...size, env: { ...live.desk.environment, ...env } })
const allowed = { outcome: 'allow', reason: 'ok', denied_by: '', key_id: 'bolt-a' }

/** Makes decisions until it is told that they are seen. */
async function decideUntil(isSeen: () => boolean, ...decisions: readonly object[]): Promise<void> {
  const decideAll = async () => {
    await Promise.all(decisions.map((one) => live.decide('kafka', one)))
    return isSeen()
  }
  expect(await waitUntil(decideAll, { deadlineMs: 30_000, everyMs: 200 })).toBe(true)
}

test('weir top shows rates by subject on the whole terminal, and what its keys do', async () => {
  const top = await open(['top', '--seconds', '60'])
  try {
    const has = (what: string) => () => top.screen.text().includes(what)
    const evil = { ...allowed, subject: 'a\u001b[31m\u202eb' }
    await decideUntil(has('bolt'), { count: 3 }, { ...allowed, subject: 'bolt', count: 60 }, evil)
    await top.see(/\/s allowed .*\/s refused +counted until not known +last \d+ s/)
    const lines = top.screen.lines()
    expect(lines).toHaveLength(24)
    expect(lines[1]).toMatch(/^ +SUBJECT +REQ\/S +REFUSED\/S +BY +NEAREST +KEY$/)
    expect(lines[2]).toMatch(/^ +bolt +[\d.]+ +0\.0 +minute 98 % +bolt-a$/)
    expect(lines[3]).toMatch(/^ +acme +[\d.]+ +[\d.]+ +minute +minute 98 % +acme-1$/)
    expect(lines[4]).toMatch(/^ +a\\u001b\[31m/)
    expect(lines.at(-1)).toBe('q quit  p pause  s sort (requests)  f filter  ↑↓ choose  Enter why')
    top.type('s')
    await top.see((screen) => /^ +acme/.test(screen.lines()[2] ?? ''))
    top.type('fbol\r')
    await top.see((screen) => !screen.text().includes('acme') && screen.text().includes('f filter (bol)'))
    top.type('f\u001b')
    await top.see((screen) => screen.text().includes('acme-1'))
    top.type('p')
    await top.see('PAUSED')
    await live.decide('tables')
    top.type('j\r')
    await top.see('REFUSED  acme  POST /v1/search  cost 5')
    top.type('\u001b')
    await top.see('›')
    top.resize(10, 60)
    await top.see(
      (screen) =>
        screen.lines().at(-1)?.startsWith('q quit') === true && !screen.lines().some((line) => line.length > 59),
    )
    top.resize(40, 160)
    await top.see((screen) => screen.lines()[39]?.startsWith('q quit') === true)
    expect(top.screen.isStyled).toBe(true)
    top.type('q')
    expect(await top.ended).toEqual({ code: 0, isSame: true })
    expect([top.screen.isAlternate, top.screen.isCursorShown, top.screen.isWrapping]).toEqual([false, true, true])
  } finally {
    await top.close()
  }
}, 120_000)

test.each([
  ['Ctrl-C', 130, (_: number, type: (text: string) => void) => type('\u0003')],
  ['SIGTERM', 143, (pid: number) => process.kill(pid, 'SIGTERM')],
  ['SIGHUP', 129, (pid: number) => process.kill(pid, 'SIGHUP')],
  ['SIGQUIT', 131, (pid: number) => process.kill(pid, 'SIGQUIT')],
  ['Ctrl-\\', 131, (_: number, type: (text: string) => void) => type('\u001c')],
] as const)('%s ends a screen with %i and leaves the terminal as it was', async (_, code, end) => {
  for (const args of [['top'], ['tail', '--screen']]) {
    const terminal = await open(args, { env: { NO_COLOR: '1' } })
    try {
      await terminal.see('q quit')
      expect([terminal.screen.isAlternate, await terminal.isSame()]).toEqual([true, false])
      end(terminal.pid, terminal.type)
      expect(await terminal.ended).toEqual({ code, isSame: true })
      const { isAlternate, isCursorShown, isWrapping, isStyled } = terminal.screen
      expect({ isAlternate, isCursorShown, isWrapping, isStyled }).toEqual({
        ...{ isAlternate: false, isCursorShown: true, isWrapping: true, isStyled: false },
      })
    } finally {
      await terminal.close()
    }
  }
})

test('a refused stream ends a screen with its reason, on the terminal as it was', async () => {
  const top = await open(['top'], { env: { WEIR_ADMIN_TOKEN: 'another' } })
  await top.see('does not know the token')
  expect(await top.ended).toEqual({ code: 1, isSame: true })
  expect([top.screen.isAlternate, top.screen.isCursorShown]).toEqual([false, true])
})

test('Ctrl-Z gives the terminal back to the shell, and fg draws the screen again', async () => {
  const shell = await openTerminal(['bash', '--norc', '--noediting', '-i'], { env: live.desk.environment })
  try {
    shell.type(`${weir} top\r`)
    await shell.see('q quit')
    shell.type('\u001a')
    await shell.see((screen) => !screen.isAlternate && screen.isCursorShown)
    await shell.see('Stopped')
    shell.type('echo still $((40 + 2))\r')
    await shell.see('still 42')
    shell.type('fg\r')
    await shell.see((screen) => screen.isAlternate && screen.text().includes('q quit'))
    shell.type('q')
    await shell.see((screen) => !screen.isAlternate)
    shell.type('exit $?\r')
    expect(await shell.ended).toMatchObject({ code: 0 })
  } finally {
    await shell.close()
  }
})

test('weir tail --screen lists decisions, the newest first, and explains the chosen one', async () => {
  const tail = await open(['tail', '--screen', '--subject', 'tess'])
  try {
    const tess = { subject: 'tess', key_id: 'tess-1' }
    await decideUntil(() => tail.screen.text().includes('tess'), { ...tess, ...allowed })
    const id = await live.decide('both', { ...tess, cost: 7 })
    await tail.see(/✕ +tess +POST \/v1\/search +7 +minute 98\/100/)
    expect(tail.screen.lines()[2]).toContain('✕')
    tail.type('\r')
    await tail.see('REFUSED  tess  POST /v1/search  cost 7')
    tail.type('\u001b')
    await tail.see('› ')
    tail.type('f✓\r')
    await tail.see((screen) => !screen.text().includes('✕'))
    expect(id).toBeTruthy()
    tail.type('q')
    expect(await tail.ended).toEqual({ code: 0, isSame: true })
  } finally {
    await tail.close()
  }
})

test('weir top prints once where there is no screen, and counts every decision whatever the stream lists', async () => {
  const dumb = await open(['top', '--seconds', '2'], { env: { TERM: 'dumb' }, columns: 120 })
  const piped = runWeir(['top', '--seconds', '2', '--limit', '1'], live.desk.environment)
  const streamed = await open(['top', '--json', '--subject', 'many'], { columns: 2_000, rows: 100 })
  let printed: Awaited<typeof piped> | undefined
  void piped.then((output) => (printed = output))
  await decideUntil(() => printed !== undefined && dumb.screen.text().includes('KEY'), {
    ...{ subject: 'once', key_id: 'once-1', count: 99 },
  })
  expect(await dumb.ended).toEqual({ code: 0, isSame: true })
  expect(dumb.screen.text()).toMatch(/once +[\d.]+ +[\d.]+ +minute +minute 98 % +once-1/)
  const { code, stdout } = await piped
  expect([code, stdout.split('\n').length]).toEqual([0, 4])
  expect(stdout).toMatch(/\/s refused .* last 2 s\nSUBJECT +REQ\/S +REFUSED\/S +BY +NEAREST +KEY\nonce /)
  const sums = (): readonly { readonly subjects: readonly { readonly count: number }[] }[] =>
    streamed.screen
      .lines()
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
  expect(await waitUntil(() => sums().length > 0, { deadlineMs: 30_000 })).toBe(true)
  await Promise.all(Array.from({ length: 700 }, () => live.decide('kafka', { ...allowed, subject: 'many' })))
  const counted = () =>
    sums()
      .flatMap(({ subjects }) => subjects.map(({ count }) => count))
      .reduce((a, b) => a + b, 0)
  expect(await waitUntil(() => counted() >= 700, { deadlineMs: 30_000 })).toBe(true)
  expect(counted()).toBe(700)
  streamed.type('\u0003')
  expect(await streamed.ended).toEqual({ code: 130, isSame: true })
})

test('weir tail ends without a word when its reader has read enough', async () => {
  const script = `{ ${weir} tail --json --subject pipe; echo "ended with $?" >&2; } | head -n 2`
  const child = spawnBound(['bash', '-c', script], { env: { ...process.env, ...live.desk.environment }, stdio: 'pipe' })
  let reported = ''
  child.stderr?.on('data', (data: Buffer) => (reported += data.toString()))
  child.stdout?.resume()
  await decideUntil(() => reported.includes('\n'), { subject: 'pipe' })
  expect(reported).toBe('ended with 141\n')
})
