import { expect, test } from 'vitest'
import { testsTouchedBy } from '../runner/changed-tests.ts'

/** A small repository, by path. */
const files: Readonly<Record<string, string>> = {
  'packages/a/package.json': '{ "name": "@weir/a" }',
  'packages/a/src/one.ts': "export { two } from './two.ts'",
  'packages/a/src/two.ts': 'export const two = 2',
  'packages/a/src/one.test.ts': "import { two } from './one.ts'",
  'packages/a/src/alone.test.ts': "import { test } from 'vitest'",
  'services/s/src/main.ts': "import { two } from '@weir/a/two.ts'",
  'lua/scripts/decide.lua': '',
  'lua/lib/clock.lua': '',
  'infra/tables/0001.sql': '',
  'test/support/start.ts': `const main = resolve(import.meta.dirname, '../../services/s/src/main.ts')`,
  'test/support/start-any.ts': `const main = \`\${projectRoot}/services/\${name}/src/main.ts\``,
  'test/servers/started.test.ts': "import '../support/start.ts'",
  'test/servers/any.test.ts': "import '../support/start-any.ts'",
  'test/servers/tables.test.ts': "const folder = join(root, 'infra/tables')",
  'test/lua/script.test.ts': "const script = readScript('scripts/decide.lua')",
}
const tree = Object.entries(files).map(([path, text]) => ({ path, text }))

test.each([
  [
    'imports, at any remove',
    'packages/a/src/two.ts',
    ['packages/a/src/one.test.ts', 'test/servers/started.test.ts', 'test/servers/any.test.ts'],
  ],
  ['starts as a program', 'services/s/src/main.ts', ['test/servers/started.test.ts', 'test/servers/any.test.ts']],
  ['reads as one of a folder', 'infra/tables/0001.sql', ['test/servers/tables.test.ts']],
  ['runs as a part of a script', 'lua/lib/clock.lua', ['test/lua/script.test.ts']],
  ['is', 'packages/a/src/alone.test.ts', ['packages/a/src/alone.test.ts']],
])('A change picks each test that %s what changed, and no other', (_, changed, picked) => {
  expect(testsTouchedBy([changed], tree)).toEqual(picked)
})

test('A change of what all tests depend on picks all of them', () => {
  const all = Object.keys(files).filter((path) => path.endsWith('.test.ts'))
  for (const one of ['vitest.config.ts', 'packages/a/package.json', 'test/support/servers/start-server.ts'])
    expect(testsTouchedBy([one], tree)).toEqual(all)
})
