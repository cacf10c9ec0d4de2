import { expect, test } from 'vitest'
import { tree } from './read-tree.ts'

const textOf = (path: string) => tree.find((file) => file.path === path)?.text ?? ''

test('what is fetched is pinned: no npx, no pip without hashes, no go install, no Maven', () => {
  const fetchers = tree.filter(
    ({ path }) =>
      path === 'weir' || path.endsWith('Dockerfile') || /^(test\/support|examples|infra|packages)\/.*\.ts$/.test(path),
  )
  const loose = [
    /\bnpx\b/,
    /'pip', '(?:install|download)', (?!\.\.\.(?:pinned|args))/,
    /'go', \['install'|\['install', `/,
    /'mvn'/,
    /--no-frozen-lockfile/,
  ]
  const found = fetchers.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line) => (loose.some((one) => one.test(line)) ? [`${path}: ${line.trim()}`] : [])),
  )
  expect([fetchers.length > 100, found]).toEqual([true, []])
})

test('every version that a pinned file names has a hash, and is the one that the code names its folder by', () => {
  const programs = textOf('test/support/programs/test-programs.ts')
  for (const { path, text } of tree.filter((file) => /^test\/support\/pinned\/.*\.txt$/.test(file.path))) {
    const [, name = '', version = 'none'] = /^(\S+)==(\S+)/.exec(text) ?? []
    expect([path, text]).toEqual([path, expect.stringMatching(/--hash=sha256:[0-9a-f]{64}/)])
    if (programs.includes(`'${name}'`)) expect(programs).toContain(`wheel('${name}', '${version}'`)
  }
  const client = /==(\S+)/.exec(textOf('test/support/pinned/confluent-kafka.txt'))?.[1] ?? 'none'
  expect(textOf('examples/alerts-python/python-client.ts')).toContain(`'${client}'`)
})

test('what npm installs is what its lock files pin by hash', () => {
  for (const folder of ['infra/pnpm', 'test/support/programs/chromium', 'test/support/suppliers-sdks/npm']) {
    const { packages } = JSON.parse(textOf(`${folder}/package-lock.json`))
    const { dependencies, optionalDependencies } = JSON.parse(textOf(`${folder}/package.json`))
    for (const [name, version] of Object.entries({ ...dependencies, ...optionalDependencies })) {
      expect(packages[`node_modules/${name}`]).toMatchObject({ version, integrity: expect.stringMatching(/^sha512-/) })
    }
  }
})

test('the version that processes report is that of the repository', () => {
  const versionOf = (path: string) => JSON.parse(textOf(path)).version
  expect(versionOf('packages/runtime/package.json')).toBe(versionOf('package.json'))
})
