import { execFileSync, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { expect, onTestFinished, test } from 'vitest'

test('the launcher finds its own folder, whatever CDPATH says', () => {
  const above = dirname(projectRoot)
  const options = { cwd: above, env: { ...process.env, CDPATH: above }, encoding: 'utf8' } as const
  expect(execFileSync('sh', [join(basename(projectRoot), 'weir'), 'help'], options)).toContain('Usage: weir')
})

test('the launcher takes tests and benches to the scripts of the repository, and says what they take', () => {
  const weir = (...words: string[]) => spawnSync(join(projectRoot, 'weir'), words, { encoding: 'utf8' })
  expect(weir('bench').stdout.split('\n')).toContain('decide')
  expect(weir('test', '--help').stdout).toContain('Usage: weir test [TIER...]')
  expect(weir('test', 'nothing')).toMatchObject({ status: 2, stderr: expect.stringContaining('no test tier nothing') })
  expect(weir('bench', 'nothing')).toMatchObject({ status: 2, stderr: expect.stringContaining('no bench nothing') })
  expect(weir('bench', '--rounds', '0')).toMatchObject({ status: 2, stderr: expect.stringContaining('1 to 100') })
})

test.each([
  [['decide', '--rate', '5'], 'Only the bench pipeline takes --rate'],
  [['decide', '--rows', '5'], 'Only the bench usage takes --rows'],
  [['usage', '--rows', 'x'], '--rows takes a whole number'],
  [['pipeline', '--rate', '200', 'decide'], 'bench takes one name'],
  [['pipeline', '--rate', '200', '0'], '--rate takes whole numbers from 1'],
  [['pipeline', '--partitions', '6,x'], '--partitions takes whole numbers from 1'],
  [['pipeline', '--tree', tmpdir()], 'is no checkout of Weir'],
])('weir bench %j ends before anything starts, and says why', (words, reason) => {
  const { status, stderr } = spawnSync(join(projectRoot, 'weir'), ['bench', ...words], { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(reason) })
})

test('The launcher keeps compiled code in .weir for the next run, unless the environment names another folder', () => {
  const root = mkdtempSync(join(tmpdir(), 'weir-launcher-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  copyFileSync(join(projectRoot, 'weir'), join(root, 'weir'))
  for (const name of ['node_modules', 'packages', 'infra', 'pnpm-lock.yaml'])
    symlinkSync(join(projectRoot, name), join(root, name))
  mkdirSync(join(root, '.weir'))
  for (const name of readdirSync(join(projectRoot, '.weir')).filter((one) => one.startsWith('tools')))
    symlinkSync(join(projectRoot, '.weir', name), join(root, '.weir', name))
  const { NODE_COMPILE_CACHE: _, ...env } = process.env
  const other = join(root, 'other')
  execFileSync('sh', [join(root, 'weir'), 'help'], { env: { ...env, NODE_COMPILE_CACHE: other } })
  expect([existsSync(other), existsSync(join(root, '.weir/compile-cache'))]).toEqual([true, false])
  execFileSync('sh', [join(root, 'weir'), 'help'], { env })
  expect(existsSync(join(root, '.weir', 'compile-cache'))).toBe(true)
})

const musl = { uname: 'echo Linux x86_64', getconf: 'exit 1' }
const arm = { uname: 'echo Linux aarch64', getconf: 'echo glibc 2.36' }

test.each([
  [
    'no Node',
    'up',
    { uname: 'echo Linux x86_64', 'apt-get': '' },
    ['found none on the PATH', 'apt-get install -y nodejs npm'],
  ],
  ['Node 16', 'up', { node: 'echo v16.20.0', npm: '', dnf: '' }, ['found v16.20.0', 'dnf install -y nodejs npm']],
  ['arm64', 'up', { ...arm, node: 'echo v24.9.0', npm: '' }, ['this is Linux aarch64 with glibc', 'docker compose up']],
  [
    'an old glibc',
    'up',
    { uname: 'echo Linux x86_64', getconf: 'echo glibc 2.27', node: 'echo v24.9.0', npm: '' },
    ['glibc 2.28'],
  ],
  ['musl', 'up', { ...musl, node: 'echo v24.9.0', npm: '' }, ['this is Linux x86_64.', 'WEIR_CLICKHOUSE_URL']],
  [
    'musl and an old Node',
    'version',
    { ...musl, node: 'echo v20.0.0', npm: '', apk: '' },
    ['needs Node 24', 'apk add nodejs npm'],
  ],
])('on a machine with %s the launcher says what to do before it fetches anything', (_, command, programs, words) => {
  const root = mkdtempSync(join(tmpdir(), 'weir-launcher-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  copyFileSync(join(projectRoot, 'weir'), join(root, 'weir'))
  const bin = join(root, 'bin')
  mkdirSync(bin)
  for (const name of ['sh', 'dirname', 'readlink', 'env', 'grep', 'cksum', 'tr']) {
    symlinkSync(execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(), join(bin, name))
  }
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  const { status, stderr } = spawnSync(join(bin, 'sh'), [join(root, 'weir'), command], {
    env: { PATH: bin },
    encoding: 'utf8',
  })
  expect(status).toBe(1)
  for (const word of words) expect(stderr).toContain(word)
  expect(existsSync(join(root, '.weir'))).toBe(false)
})
