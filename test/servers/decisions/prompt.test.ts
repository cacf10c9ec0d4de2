import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { missingPrograms } from '@weir/runtime/native-server.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LiveConsole, openLiveConsole } from '../../support/decisions/live-console.ts'
import { openTerminal } from '../../support/terminal/open-terminal.ts'
import { runWeir } from '../../support/weir-up.ts'

let live: LiveConsole
/** A home without settings of anybody's. */
let home: string
const names = ['tab-bolt', "tab it's $HOME", 'tab:a=b', 'tab\u001b[31m']
beforeAll(async () => {
  const missing = missingPrograms(
    ['zsh', 'fish'].map((program) => ({ program, install: `apt-get install -y ${program}` })),
    process.env.PATH,
  )
  expect(missing).toEqual([])
  live = await openLiveConsole()
  home = await mkdtemp(join(tmpdir(), 'weir-test-home-'))
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await runWeir(['completion', shell])
    await writeFile(join(home, shell), stdout)
  }
  for (const subject of names) await live.decide('tables', { subject })
}, 180_000)
afterAll(async () => {
  await live?.close()
  await rm(home, { recursive: true, force: true })
})

const weir = join(projectRoot, 'weir')
const setUp = {
  bash: { command: ['bash', '--norc', '-i'], lines: ['source $HOME/bash', "PS1='> '"] },
  zsh: {
    command: ['zsh', '-f', '-i'],
    lines: ["PS1='> '", 'autoload -U compinit; compinit -D', 'source $HOME/zsh', 'setopt no_always_last_prompt'],
  },
}

test.each(['bash', 'zsh'] as const)(
  '%s completes commands, options, values, files, and names that Weir knows',
  async (name) => {
    const { command, lines } = setUp[name]
    const env = { ...live.desk.environment, HOME: home, ZDOTDIR: home, HISTFILE: '' }
    const shell = await openTerminal(command, { env, columns: 160 })
    try {
      for (const line of lines) shell.type(`${line}\r`)
      shell.type('clear; echo re""ady\r')
      await shell.see('ready')
      // What is typed behind it stands where the completion has ended.
      const complete = async (typed: string, completed: string) => {
        shell.type(`${typed}\t%`)
        await shell.see(`> ${completed}%`)
        shell.type('\u0015\r')
      }
      await complete('weir stat', 'weir status ')
      await complete('./weir keys rot', './weir keys rotate ')
      await complete('weir usage --for', 'weir usage --format ')
      await complete('weir usage --format p', 'weir usage --format parquet ')
      await complete('weir usage --format=j', 'weir usage --format=jsonl ')
      await complete(`weir check --policy ${projectRoot}/weir.ya`, `weir check --policy ${projectRoot}/weir.yaml `)
      await complete('weir usage --subject tab-', 'weir usage --subject tab-bolt ')
      await complete('weir usage --subject tab:', 'weir usage --subject tab:a=b ')
      await complete('weir usage --subject tab\\ it', "weir usage --subject tab\\ it\\'s\\ \\$HOME ")
      shell.type('exit\r')
      await shell.ended
    } finally {
      await shell.close()
    }
  },
)

test('fish completes the same, with what each word is for', () => {
  const complete = (line: string) => {
    const script = `source ${join(home, 'fish')}; complete -C ${JSON.stringify(line)}`
    const env = { ...process.env, ...live.desk.environment, HOME: home }
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', script], {
      encoding: 'utf8',
      env,
      cwd: projectRoot,
    })
    expect(stderr).toBe('')
    return stdout.trimEnd().split('\n')
  }
  expect(complete('weir stat')).toEqual(['status\tSay whether anything is wrong now; exit code 1 if so.'])
  expect(complete('./weir usage --format ')).toEqual(['csv', 'jsonl', 'parquet'])
  expect(complete('weir usage --format=j')).toEqual(['--format=jsonl'])
  expect(complete('weir check --policy weir.ya')).toEqual(['weir.yaml'])
  expect(complete('weir usage --subject tab').toSorted()).toEqual(names.slice(0, 3).toSorted())
})

test('completion is silent where no Weir answers, and where nothing is known', async () => {
  for (const [env, words] of [
    [{ WEIR_CONSOLE_URL: 'http://127.0.0.1:9', WEIR_ADMIN_TOKEN: 'x' }, ['usage', '--subject', '']],
    [{ ...live.desk.environment, WEIR_ADMIN_TOKEN: 'another' }, ['usage', '--subject', '']],
    [live.desk.environment, ['why', '']],
    [live.desk.environment, ['no-such', 'thing', '']],
  ] as const) {
    expect(await runWeir(['complete-words', '--', ...words], env)).toEqual({ code: 0, stdout: '', stderr: '' })
  }
})

test('weir alone says what runs, whether all is well, and what to try next', async () => {
  const { code, stdout, stderr } = await runWeir([], live.desk.environment)
  expect([code, stderr]).toEqual([stdout.includes('All is well') ? 0 : 1, ''])
  expect(stdout).toContain(`Weir runs: page and API ${live.desk.environment.WEIR_CONSOLE_URL}\n`)
  const [, next = ''] = stdout.split('\nNext:\n')
  expect(next.match(/^ {2}\.\/weir .* {2}\w/gm)).toHaveLength(stdout.includes('All is well') ? 5 : 6)
  const gone = await runWeir([], { WEIR_CONSOLE_URL: 'http://127.0.0.1:9', WEIR_ADMIN_TOKEN: 'x' })
  expect([gone.code, gone.stdout]).toEqual([1, ''])
  expect(gone.stderr).toContain('cannot be reached')
})

test('who waits for a second sees how long on a terminal, and never in JSON', async () => {
  const held: (() => void)[] = []
  const server = (await import('node:http')).createServer((_, response) => {
    held.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[],"next":null}'))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  const env = { WEIR_CONSOLE_URL: url, WEIR_ADMIN_TOKEN: 'x' }
  const [json, people] = await Promise.all([
    openTerminal([weir, 'keys', 'list', '--json'], { env }),
    openTerminal([weir, 'keys', 'list'], { env }),
  ])
  await people.see(/^keys list {2}\d s$/)
  expect(json.screen.text()).toBe('')
  for (const answer of held) answer()
  expect(await people.ended).toEqual({ code: 0, isSame: true })
  expect(await json.ended).toEqual({ code: 0, isSame: true })
  expect(people.screen.text()).not.toMatch(/\d s/)
  expect(json.screen.text()).toMatch(/^[[{].*[\]}]$/)
  server.close()
})

test('every example in the help of a command runs', async () => {
  await live.decide('tables')
  await live.mark()
  const env = { ...process.env, ...live.desk.environment, INIT_CWD: home }
  const examples: string[] = []
  for (const command of ['usage', 'why', 'tail', 'top', 'completion']) {
    const { stdout } = await runWeir([command, '--help'])
    const [, listed = ''] = stdout.split('\nExamples:\n')
    examples.push(...Array.from(listed.matchAll(/^ {2}\.\/(weir .*?) +# /gm), ([, example = '']) => example))
  }
  expect(examples.length).toBeGreaterThan(10)
  for (const example of examples) {
    const isEndless = /^weir (?:tail(?!.*--no-follow)|top --json)/.test(example)
    const child = spawnBound(['sh', '-c', `exec ${projectRoot}/${example}`], { env, cwd: home, stdio: 'pipe' })
    let said = ''
    for (const output of [child.stdout, child.stderr]) output?.on('data', (data: Buffer) => (said += data.toString()))
    const ended = new Promise((done) => child.once('close', done))
    if (isEndless) {
      const decideAll = async () => {
        await live.decide('kafka')
        return said.includes('acme') || child.exitCode !== null
      }
      expect([example, await waitUntil(decideAll, { deadlineMs: 30_000, everyMs: 300 })]).toEqual([example, true])
      child.kill('SIGTERM')
    }
    expect([example, await ended, said]).toEqual([example, isEndless ? 143 : 0, said])
  }
}, 120_000)
