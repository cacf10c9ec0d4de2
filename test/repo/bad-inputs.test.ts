import { describe, expect, test } from 'vitest'
import { type Callable, checkCommands } from './rules/commands-in-docs.ts'
import { checkBarrels, checkDeadExports } from './rules/dead-exports.ts'
import { checkFileNames } from './rules/file-names.ts'
import { checkCoreOrder, checkLayers, checkProcessUse } from './rules/layers.ts'
import { checkCode, checkComments, checkTexts } from './rules/leftovers.ts'
import { checkCatalog, checkDeclared, checkUsed } from './rules/manifests.ts'
import { compareRows } from './rules/named-rows.ts'
import { codeMetrics, codeVariables, textsIn } from './rules/names-in-code.ts'
import { checkLinks, checkPaths } from './rules/paths-in-docs.ts'
import { checkFileSizes, checkFunctionSizes, longFiles } from './rules/sizes.ts'
import type { Finding, SourceFile } from './rules/source-file.ts'
import { checkColumns, checkWords } from './rules/words.ts'

/** A small tree: the texts by their paths. */
const treeOf = (files: Readonly<Record<string, string>>): SourceFile[] =>
  Object.entries(files).map(([path, text]) => ({ path, text }))

const manifest = (name: string, dependencies: Record<string, string> = {}, devDependencies = {}) =>
  JSON.stringify({ name, dependencies, devDependencies })

const packages = {
  'packages/core/package.json': manifest('@weir/core'),
  'packages/core/src/errors.ts': '',
  'packages/core/src/clock.ts': '',
  'packages/runtime/package.json': manifest('@weir/runtime'),
  'packages/redis/package.json': manifest('@weir/redis'),
  'packages/cli/package.json': manifest('@weir/cli'),
  'services/ingress/package.json': manifest('@weir/ingress'),
  'services/metering/package.json': manifest('@weir/metering'),
  'infra/local/redis/package.json': manifest('@weir/local-redis'),
  'test/package.json': manifest('@weir/test'),
}

const whats = (findings: readonly Finding[]) => findings.map(({ what }) => what)

/** The place of the only finding, as `path:line`. */
const placeOf = ([finding, second]: readonly Finding[]) =>
  second === undefined ? `${finding?.path}:${finding?.line}` : 'several'

describe('layers', () => {
  test.each([
    ['core may not know Redis', 'packages/core/src/a.ts', "import { Redis } from 'ioredis'"],
    ['nor by its types', 'packages/core/src/a.ts', "import type { Redis } from 'ioredis'"],
    ['nor by a type in place', 'packages/core/src/a.ts', "const a: import('ioredis').Redis = b"],
    ['nor when it is loaded late', 'packages/core/src/a.ts', "const a = await import('ioredis')"],
    ['nor in the older way', 'packages/core/src/a.ts', "const a = createRequire(here).resolve('ioredis')"],
    ['core may not open files', 'packages/core/src/a.ts', "import { readFileSync } from 'node:fs'"],
    ['runtime knows of core only its errors', 'packages/runtime/src/a.ts', "import '@weir/core/clock.ts'"],
    ['kafkajs is for its package alone', 'services/ingress/src/a.ts', "export type { Kafka } from 'kafkajs'"],
    ['services do not import services', 'services/ingress/src/a.ts', "import '@weir/metering/config.ts'"],
    ['nor around their names', 'services/ingress/src/a.ts', "import '../../metering/src/config.ts'"],
    ['the command line knows of a service its variables', 'packages/cli/src/a.ts', "import '@weir/ingress/app.ts'"],
    ['local servers know no domain', 'infra/local/redis/src/a.ts', "import '@weir/core/errors.ts'"],
    ['running code does not use tests', 'services/ingress/src/a.ts', "import '@weir/test/a.ts'"],
    ['unit tests do not either', 'packages/core/src/a.test.ts', "import '@weir/test/a.ts'"],
    ['a package does not import itself by name', 'packages/core/src/a.ts', "import '@weir/core/clock.ts'"],
    ['a file must be there', 'packages/core/src/a.ts', "import './gone.ts'"],
    ['what is imported can be read', 'services/ingress/src/a.ts', 'const a = await import(name)'],
    ['a new package needs a row', 'packages/new/src/a.ts', "import 'node:fs'"],
  ])('%s', (_why, path, text) => {
    const more = { 'packages/new/package.json': manifest('@weir/new') }
    expect(placeOf(checkLayers(treeOf({ ...packages, ...more, [path]: text })))).toBe(`${path}:1`)
  })

  test('what the table allows is no finding', () => {
    const allowed = {
      'packages/core/src/a.ts':
        "import { Temporal } from 'temporal-polyfill'\nimport './clock.ts'\nimport { createHash } from 'node:crypto'",
      'packages/core/src/a.test.ts': "import { test } from 'vitest'\nimport { readFileSync } from 'node:fs'",
      'packages/runtime/src/a.ts': "import { WeirError } from '@weir/core/errors.ts'",
      'packages/cli/src/a.ts': "import '@weir/ingress/config.ts'",
      'test/a.ts': "import '@weir/ingress/app.ts'\nimport type { Kafka } from 'kafkajs'",
    }
    expect(whats(checkLayers(treeOf({ ...packages, ...allowed })))).toEqual([])
  })

  test.each(['process.env.A', 'process.exit(1)'])('%s stands in main.ts and in tests only', (text) => {
    expect(placeOf(checkProcessUse(treeOf({ 'services/a/src/app.ts': `\n${text}` })))).toBe('services/a/src/app.ts:2')
    const free = { 'services/a/src/main.ts': text, 'test/a.ts': text, 'services/a/src/a.test.ts': text }
    expect(checkProcessUse(treeOf(free))).toEqual([])
  })

  test('two folders of core that import each other are found where fewer imports go', () => {
    const alerts = "import '../limits/limit.ts'"
    const circle = {
      'packages/core/src/alerts/a.ts': alerts,
      'packages/core/src/alerts/b.ts': alerts,
      'packages/core/src/limits/limit.ts': "import '../alerts/a.ts'",
    }
    expect(placeOf(checkCoreOrder(treeOf(circle)))).toBe('packages/core/src/limits/limit.ts:1')
    expect(checkCoreOrder(treeOf({ 'packages/core/src/alerts/a.ts': alerts }))).toEqual([])
  })
})

describe('manifests', () => {
  const root = { 'package.json': manifest('weir', {}, { vitest: 'catalog:' }) }
  const withPackage = (dependencies: object, files: Record<string, string>, devDependencies = {}) =>
    treeOf({
      ...root,
      'packages/a/package.json': JSON.stringify({ name: '@weir/a', dependencies, devDependencies }),
      ...files,
    })

  test('an import that is not declared is found, and one that is declared for tests only', () => {
    const running = { 'packages/a/src/a.ts': "import 'yaml'" }
    expect(whats(checkDeclared(withPackage({}, running)))).toEqual([
      'yaml is imported, and declared not at all in packages/a/package.json',
    ])
    expect(whats(checkDeclared(withPackage({}, running, { yaml: 'catalog:' })))).toEqual([
      'yaml is imported, and declared only for its tests in packages/a/package.json',
    ])
    const test = { 'packages/a/src/a.test.ts': "import 'vitest'\nimport 'yaml/util'" }
    expect(checkDeclared(withPackage({}, test, { yaml: 'catalog:' }))).toEqual([])
  })

  test('a dependency that nothing imports is found, and one that only tests import', () => {
    expect(whats(checkUsed(withPackage({ yaml: 'catalog:' }, {})))).toEqual(['nothing imports yaml'])
    const test = { 'packages/a/src/a.test.ts': "import 'yaml'" }
    expect(whats(checkUsed(withPackage({ yaml: 'catalog:' }, test)))).toEqual([
      'only tests import yaml: it belongs to devDependencies',
    ])
  })

  test('a program of the documents uses what the tests declare, and nothing else', () => {
    const shown = { 'test/package.json': manifest('@weir/test', { pino: 'catalog:' }), 'docs/a/a.mjs': "import 'yaml'" }
    expect(whats(checkDeclared(treeOf(shown)))).toEqual([
      'yaml is imported, and declared not at all in test/package.json',
    ])
    expect(whats(checkUsed(treeOf(shown)))).toEqual(['nothing imports pino'])
    expect(checkUsed(treeOf({ ...shown, 'docs/a/b.mjs': "import 'pino'" }))).toEqual([])
  })

  test('a version outside the catalog, an inexact one and an unused one are found', () => {
    const catalog = { 'pnpm-workspace.yaml': 'catalog:\n  yaml: ^2.0.0\n  pino: 1.0.0\n  vitest: 5.0.0' }
    expect(whats(checkCatalog(withPackage({ yaml: '2.0.0', weir: 'catalog:' }, catalog)))).toEqual([
      'yaml is "2.0.0", and should be "catalog:"',
      'weir is "catalog:", and should be "workspace:*"',
      'yaml is ^2.0.0, not one exact version',
      'no package uses pino',
    ])
  })
})

describe('sizes', () => {
  const lines = (count: number) => 'a()\n'.repeat(count)

  test.each(['a.ts', 'a.lua', 'a.sh'])('%s may have 400 lines, and is mentioned above 250', (path) => {
    expect(checkFileSizes(treeOf({ [path]: lines(400) }))).toEqual([])
    expect(whats(checkFileSizes(treeOf({ [path]: lines(401) })))).toEqual(['401 lines, 400 at most'])
    expect(longFiles(treeOf({ [path]: lines(250) }))).toEqual([])
    expect(longFiles(treeOf({ [path]: lines(251) }))).toHaveLength(1)
  })

  test.each([
    ['a.ts', 'function a() {\n', '}'],
    ['a.ts', 'const a = () => {\n', '}'],
    ['a.ts', 'class A {\na() {\n', '}\n}'],
    ['a.lua', 'local function a()\n', 'end'],
    ['a.lua', 'a.plan = function()\n', 'end'],
  ])('in %s, %s… may have 80 lines', (path, head, foot) => {
    expect(checkFunctionSizes(treeOf({ [path]: head + lines(78) + foot }))).toEqual([])
    expect(whats(checkFunctionSizes(treeOf({ [path]: head + lines(79) + foot })))).toEqual([
      'a function of 81 lines, 80 at most',
    ])
  })

  test('a group of tests is no function, but each test is one', () => {
    const group = (inside: string) => ({
      'a.test.ts': `describe('a', () => {\ntest('b', () => {\n${inside}})\n${lines(90)}})`,
    })
    expect(checkFunctionSizes(treeOf(group('')))).toEqual([])
    expect(checkFunctionSizes(treeOf(group(lines(80))))).toHaveLength(1)
  })
})

describe('leftovers', () => {
  const unfinished = ['TO', 'DO'].join('')
  const home = ['', 'root', 'a'].join('/')

  test.each([`// ${unfinished}: later`, `/* FIX${'ME'} */`, `// biome-${'ignore'} lint: no`, `// @ts-${'ignore'}`])(
    '%s',
    (text) => {
      expect(placeOf(checkComments(treeOf({ 'a.ts': `a()\n${text}` })))).toBe('a.ts:2')
    },
  )

  test.each([
    ['let a: any', 'any'],
    ['a!.b()', 'a ! that says a value is there'],
    ['let a!: string', 'a ! that says a value will be there'],
    ['console.log(a)', "console.log: write to the program's own output or to the log"],
    ['test.only(a)', 'test.only: every test runs, always'],
    ['describe.skip(a)', 'describe.skip: every test runs, always'],
    ['test.each(a).todo(b)', 'test.todo: every test runs, always'],
    ['it.runIf(a)(b)', 'it.runIf: every test runs, always'],
  ])('%s', (text, what) => {
    expect(whats(checkCode(treeOf({ 'packages/a/src/a.ts': text })))).toEqual([what])
  })

  test.each(['setTimeout(a, 100)', "import { setTimeout as a } from 'node:timers/promises'"])(
    'in a test: %s',
    (text) => {
      expect(checkCode(treeOf({ 'test/a.ts': text }))).toHaveLength(1)
      expect(checkCode(treeOf({ 'packages/a/src/a.test.ts': text }))).toHaveLength(1)
      expect(checkCode(treeOf({ 'packages/a/src/a.ts': text }))).toEqual([])
    },
  )

  test('words that only look so are none', () => {
    const text = "const a = 'console.log any' // not any!\nif (!a) this.skip(a !== b)"
    expect(checkCode(treeOf({ 'test/a.ts': text }))).toEqual([])
    expect(checkComments(treeOf({ 'a.ts': text }))).toEqual([])
  })

  test.each([
    home,
    `cd ${home}`,
    `see https://${'registry'}.example.com/a`,
    `${unfinished} in a document`,
    `${'<'.repeat(7)} HEAD`,
  ])('%s', (text) => {
    expect(placeOf(checkTexts(treeOf({ 'a.md': `\n${text}` })))).toBe('a.md:2')
    expect(checkTexts(treeOf({ 'pnpm-lock.yaml': text }))).toEqual([])
  })

  test.each([
    'packages/a/src/readLog.ts',
    'packages/a/src/utils.ts',
    'packages/a/src/common/a.ts',
    'packages/a/src/log-helpers.ts',
    'packages/a/src/index.ts',
    'packages/a/a.ts',
    'scripts/a.ts',
  ])('a file named %s', (path) => {
    expect(checkFileNames(treeOf({ [path]: '' }))).toHaveLength(1)
  })

  test('usual names are none', () => {
    const paths = [
      'README.md',
      '.gitignore',
      'packages/a/src/decision.v1.test.ts',
      'infra/a/0001_usage_1m.sql',
      'vitest.config.ts',
    ]
    expect(checkFileNames(treeOf(Object.fromEntries(paths.map((path) => [path, '']))))).toEqual([])
  })

  test('an export that nobody imports is found, whoever else has one of that name', () => {
    const files = {
      'packages/core/package.json': manifest('@weir/core'),
      'packages/core/src/a.ts': 'export const used = 1\nexport function dead() {}\nexport interface Dead {}',
      'packages/core/src/b.ts':
        "import { used } from './a.ts'\nexport const far = used\nexport interface Part {}\nexport type Whole = Part",
      'test/c.ts': "import { far, type Whole } from '@weir/core/b.ts'\nconst dead = far",
    }
    expect(whats(checkDeadExports(treeOf(files)))).toEqual([
      'nobody imports dead: make it private or remove it',
      'nobody imports Dead: make it private or remove it',
    ])
  })

  test('a barrel is found', () => {
    expect(checkBarrels(treeOf({ 'packages/a/src/a.ts': "export * from './b.ts'" }))).toHaveLength(1)
  })
})

describe('documents', () => {
  const files = { 'docs/a.md': '# One thing\n', 'packages/a/src/read-log.ts': '', 'services/ingress/src/app.ts': '' }
  const withText = (text: string) => treeOf({ ...files, 'README.md': text })

  test.each(['packages/a/src/gone.ts', 'services/gone/', './docs/gone.md', 'gone.ts', 'write-*.ts', 'packages/b'])(
    '`%s` is not there',
    (path) => {
      expect(whats(checkPaths(withText(`\nSee \`${path}\`.`)))).toEqual([`${path} is not there`])
    },
  )

  test.each([
    'packages/a/src/read-log.ts',
    'packages/a/',
    'docs',
    './docs/a.md',
    'read-log.ts',
    'src/app.ts',
    'read-*.ts',
    'services/*/src/app.ts',
    '.weir/data',
    '/v1/usage',
    'application/json',
    '@weir/a/read-log.ts',
    'a / b',
  ])('`%s` is there, or no path of ours', (path) => {
    expect(checkPaths(withText(`See \`${path}\`.`))).toEqual([])
  })

  test.each([
    ['[a](docs/gone.md)', 'docs/gone.md leads nowhere'],
    ['[a](docs/a.md#two)', 'docs/a.md has no heading for #two'],
    ['[a](#here)', 'README.md has no heading for #here'],
  ])('%s', (text, what) => {
    expect(whats(checkLinks(withText(text)))).toEqual([what])
    expect(checkLinks(withText('[a](docs/a.md#one-thing) [b](https://example.com) `[c](gone)`'))).toEqual([])
  })

  const known: Callable = {
    commands: ['up'],
    retired: ['walk'],
    flags: ['--ports'],
    scripts: ['test', 'bench'],
    tiers: ['unit'],
    benches: ['ingress'],
  }
  test.each([
    ['`./weir fly`', './weir has no command fly'],
    ['`weir fly`', './weir has no command fly'],
    ['`weir walk`', './weir has no command walk'],
    ['```sh\n./weir up --port 1\n```', './weir has no flag --port'],
    ['```sh\nnpm run fly # up\n```', 'package.json has no script fly'],
    ['`npm test -- soak`', 'there is no tier soak'],
    ['`npm run bench -- soak`', 'there is no bench soak'],
  ])('%s', (text, what) => {
    expect(whats(checkCommands(withText(text), known))).toEqual([what])
  })

  test('commands that exist, and sentences about Weir, are none', () => {
    const text = '`./weir up --ports auto` `npm test -- TIER` `npm run bench -- ingress --rounds 3` and weir does it'
    expect(checkCommands(withText(text), known)).toEqual([])
  })

  test('a table and the code differ both ways', () => {
    const table =
      '| Name | Default |\n| --- | --- |\n| `A_B` | 1 |\n| `A_C` | 2 |\n| `A_C` | 2 |\n| `A_D` | `x` |\n| plain | 3 |'
    const wanted = [
      { name: 'A_B', cells: { 1: '9' } },
      { name: 'A_C', cells: { 1: '2' } },
      { name: 'A_D', cells: { 1: 'x' } },
      { name: 'A_E' },
    ]
    const document = { path: 'docs/a.md', text: `${table}\n| \`A_F\` | 1 |` }
    expect(whats(compareRows(document, wanted, (name) => name.startsWith('A_')))).toEqual([
      'A_F is not in the code',
      'A_B is "9" in the code',
      'A_C has a second row',
      'A_E has no row',
    ])
  })

  test('names are read from running code only', () => {
    const code = treeOf({
      'services/a/src/main.ts':
        "f(process.env.WEIR_ONE, 'CODE', { weir_two_total: 1, gen_ai_six: 1 }) // all of WEIR_*",
      'services/a/src/main.test.ts': "f(process.env.WEIR_THREE, 'OTHER', { weir_four: 1 })",
      weir: '$WEIR_FIVE',
    })
    expect(codeVariables(code)).toEqual(['WEIR_FIVE', 'WEIR_ONE'])
    expect(codeMetrics(code)).toEqual(['gen_ai_six', 'weir_two_total'])
    expect([...textsIn(code, '')]).toEqual(['CODE'])
  })
})

describe('words', () => {
  test.each([
    ['a comment', 'a.ts', '// x\n/** For whoever\n * asks anew. */', ['a.ts:2', 'a.ts:3']],
    ['the title of a test', 'a.test.ts', "test('A stranger waits', () => {})", ['a.test.ts:1']],
    ['a comment of Lua', 'a.lua', "local x = 'anew'\nx() -- and anew", ['a.lua:2']],
    ['a document', 'a.md', 'It mends\n```\nmend\n```\n`mend` [so](mend.md)\nwhat becomes of it', ['a.md:1', 'a.md:6']],
    ['no text of a program', 'a.ts', "const said = 'whoever'", []],
  ])('are found in %s', (_what, path, text, places) => {
    expect(checkWords([{ path, text }]).map(({ path: at, line }) => `${at}:${line}`)).toEqual(places)
  })

  test('a comment of more than 120 columns is found, a long text is not', () => {
    const long = 'x'.repeat(120)
    const files = treeOf({ 'a.ts': `// ${long}`, 'b.ts': `say('${long}')`, 'c.lua': `-- ${long}` })
    expect(checkColumns(files).map(({ path }) => path)).toEqual(['a.ts', 'c.lua'])
  })
})
