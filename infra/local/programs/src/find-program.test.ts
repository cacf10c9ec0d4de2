import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findProgram, findPrograms } from './find-program.ts'
import type { Program } from './program.ts'

const programsFolder = resolve(import.meta.dirname, '../../../../.weir/programs')

/** Folders of a PATH, each with a `thing` that runs these lines of sh. */
async function pathOf(...scripts: readonly string[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'weir-programs-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  const folders = scripts.map(async (script, index) => {
    const folder = join(dir, `bin${index}`)
    await mkdir(folder)
    await writeFile(join(folder, 'thing'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    return folder
  })
  return (await Promise.all(folders)).join(':')
}

/** A program of which at least version 17.2 is wanted. Its private copy is a file that says so. */
function thing(more: Partial<Program> = {}): Program {
  const folder = `test-${randomUUID()}`
  onTestFinished(() => rm(join(programsFolder, folder), { recursive: true, force: true }))
  return {
    label: 'Thing 17 or newer',
    folder,
    path: 'bin/thing',
    onPath: { names: ['thing'], home: 'THING_HOME', args: ['--version'], oldest: [17, 2] },
    source: {
      bytes: 1,
      async fill(partial) {
        await mkdir(join(partial, 'bin'))
        await writeFile(join(partial, 'bin/thing'), 'private')
      },
    },
    packages: { 'apt-get': 'thing-package', dnf: 'thing-package', apk: 'thing-package', brew: 'thing-package' },
    ...more,
  }
}

const options = (environment: Readonly<Record<string, string>>) => ({ environment, tell: () => undefined })
const stub = 'echo "Unable to locate a Thing" >&2; exit 1'

test('the first program of the PATH that runs and is new enough is taken', async () => {
  const PATH = await pathOf(stub, 'echo thing 17.1', 'echo thing version 17.2 >&2', 'echo thing 21.0')
  await expect(findProgram(thing(), options({ PATH }))).resolves.toBe(join(PATH.split(':')[2] ?? '', 'thing'))
})

test('the one in its own home comes before the PATH', async () => {
  const PATH = await pathOf('echo thing 21.0')
  const home = resolve(await pathOf('echo thing 18.0'), '..')
  await rm(join(home, 'bin'), { force: true, recursive: true })
  await mkdir(join(home, 'bin'))
  await writeFile(join(home, 'bin/thing'), '#!/bin/sh\necho 18.0\n', { mode: 0o755 })
  await expect(findProgram(thing(), options({ PATH, THING_HOME: home }))).resolves.toBe(join(home, 'bin/thing'))
})

test.each([
  ['is too old', 'echo thing 11.0.2', 'is 11.0, and 17.2 is the oldest that will do'],
  ['is a stub that fails', stub, 'does not run (exit code 1: Unable to locate a Thing)'],
  ['says no version', 'true', 'says no version'],
])(
  'one that %s gives way to the private copy; without one it is named with the cause and the remedy',
  async (_, script, cause) => {
    const PATH = await pathOf(script)
    const own = thing()
    await expect(findProgram(own, options({ PATH }))).resolves.toBe(join(programsFolder, own.folder, 'bin/thing'))
    const { source: _source, ...without } = thing()
    const failure = findProgram(without, options({ PATH }))
    await expect(failure).rejects.toThrow(`Thing 17 or newer is missing (${PATH}/thing ${cause})`)
    await expect(failure).rejects.toThrow('install -y thing-package')
  },
)

test('a fetch that fails leaves nothing, and all that are missing are named at once', async () => {
  const failing = thing({ label: 'One', source: { bytes: 1, fill: () => Promise.reject(new Error('no network')) } })
  const { source: _, ...absent } = thing({ label: 'Other' })
  const failure = findPrograms([failing, thing(), absent], options({ PATH: '' }))
  await expect(failure).rejects.toThrow('One is missing and could not be fetched: no network.')
  await expect(failure).rejects.toThrow(/^Other is missing: /m)
  await expect(failure).rejects.toMatchObject({ missing: [failing, absent] })
  expect(existsSync(join(programsFolder, failing.folder))).toBe(false)
})
