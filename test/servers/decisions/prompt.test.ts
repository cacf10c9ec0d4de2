import { projectRoot } from '@weir/cli/project.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, test } from 'vitest'
import { openLiveConsole } from '../../support/decisions/live-console.ts'
import { hear } from '../../support/hear.ts'
import { listen } from '../../support/listen.ts'
import { folderForFile, forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'
import { runWeir } from '../../support/weir-up.ts'

const live = await forFile(openLiveConsole())
const home = await folderForFile('home')

test('weir alone says what runs, whether all is well, and what to try next', async () => {
  const { code, stdout, stderr } = await runWeir([], live.desk.environment)
  expect([code, stderr]).toEqual([stdout.includes('All is well') ? 0 : 1, ''])
  expect(stdout).toContain(`Weir runs: page and API ${live.desk.environment.WEIR_CONSOLE_URL}\n`)
  const [, next = ''] = stdout.split('\nNext:\n')
  expect(next.match(/^ {2}\.\/weir .* {2}\w/gm)).toHaveLength(stdout.includes('All is well') ? 4 : 5)
  const gone = await runWeir([], { WEIR_CONSOLE_URL: 'http://127.0.0.1:9', WEIR_ADMIN_TOKEN: 'x' })
  expect([gone.code, gone.stdout]).toEqual([1, ''])
  expect(gone.stderr).toContain('cannot be reached')
})

test('who waits for a second sees how long on a terminal, and never in JSON', async () => {
  const held: (() => void)[] = []
  const server = (await import('node:http')).createServer((_, response) => {
    held.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[],"next":null}'))
  })
  const env = { WEIR_CONSOLE_URL: `http://127.0.0.1:${await listen(server)}`, WEIR_ADMIN_TOKEN: 'x' }
  // `script` runs a command in a terminal without a size, and prints everything that the command writes to it.
  const inTerminal = (command: string) => {
    const child = spawnBound(['script', '-qec', `stty columns 80; ${projectRoot}/${command}`, '/dev/null'], {
      env: { ...process.env, ...env, TERM: 'xterm' },
      stdio: 'pipe',
    })
    return hear(child)
  }
  const [json, people] = [inTerminal('weir keys list --json'), inTerminal('weir keys list')]
  await until(() => /keys list {2}\d s/.test(people.stdout), 30_000)
  expect(json.stdout).toBe('')
  for (const answer of held) answer()
  expect([await people.ended, await json.ended]).toEqual([0, 0])
  // The line of progress is erased before the result is written.
  expect(people.stdout).toMatch(/ s.\[K\r.\[K[^\r]/)
  expect(json.stdout.trim()).toMatch(/^[[{].*[\]}]$/)
  server.close()
})

test('A retired command names its replacement and exits as for a mistyped one', async () => {
  for (const [words, replacement] of [
    [['top', '--json'], '/live'],
    [['completion', 'bash'], 'Remove the line'],
  ] as const) {
    const { code, stdout, stderr } = await runWeir(words)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(new RegExp(`^weir: "weir ${words[0]}" was removed\\. .*${replacement}`))
  }
  expect((await runWeir(['tail', '--screen'])).code).toBe(2)
})

test('every example in the help of a command runs', async () => {
  await live.decide('tables')
  await live.mark()
  const env = { ...process.env, ...live.desk.environment, INIT_CWD: home }
  const examples: string[] = []
  for (const command of ['usage', 'why', 'tail']) {
    const { stdout } = await runWeir([command, '--help'])
    const [, listed = ''] = stdout.split('\nExamples:\n')
    examples.push(...Array.from(listed.matchAll(/^ {2}\.\/(weir .*?) +# /gm), ([, example = '']) => example))
  }
  expect(examples.length).toBeGreaterThan(5)
  for (const example of examples) {
    const isEndless = /^weir tail(?!.*--(?:no-follow|to))/.test(example)
    const child = spawnBound(['sh', '-c', `exec ${projectRoot}/${example}`], { env, cwd: home, stdio: 'pipe' })
    const heard = hear(child)
    if (isEndless) {
      const decideAll = async () => {
        await live.decide('kafka')
        return heard.stdout.includes('acme') || child.exitCode !== null
      }
      expect([example, await waitUntil(decideAll, { deadlineMs: 30_000, everyMs: 300 })]).toEqual([example, true])
      child.kill('SIGTERM')
    }
    expect([example, await heard.ended], heard.stderr).toEqual([example, isEndless ? 143 : 0])
  }
}, 120_000)
