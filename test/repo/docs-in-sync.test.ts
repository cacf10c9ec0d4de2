import { retired } from '@weir/cli/retired.ts'
import { errorFacts } from '@weir/core/errors.ts'
import { isPage, parts } from '@weir/docs/pages.ts'
import { describe, expect, test } from 'vitest'
import { clientReasons, upstreamReasons } from '../nightly/gateways/odd-peers/reasons.ts'
import { tierWords } from '../runner/tiers.ts'
import { readConfigs } from './read-configs.ts'
import { textOf, tree } from './read-tree.ts'
import { checkCommands } from './rules/commands-in-docs.ts'
import { readMarkdown } from './rules/markdown.ts'
import { compareRows, type Named, namedRows } from './rules/named-rows.ts'
import { argumentsOf, codeMetrics, codeVariables, textsIn, variablesIn } from './rules/names-in-code.ts'
import { checkLinks, checkPaths } from './rules/paths-in-docs.ts'
import { type Finding, formatFindings } from './rules/source-file.ts'

const document = (path: string) => ({ path, text: textOf(path) })

/** What stands in the tables as a default: the text itself, or that there is none. */
const shownDefault = (fallback: string | undefined) => {
  if (fallback === undefined) return 'required'
  return fallback === '' ? 'empty' : fallback
}

test('docs/proxy.md gives each reason for which Weir serves an odd peer otherwise than others do', () => {
  const page = textOf('docs/proxy.md')
  const reasons = [...Object.keys(clientReasons), ...Object.keys(upstreamReasons)]
  expect(reasons.filter((reason) => !page.includes(reason))).toEqual([])
})

describe('docs/configuration.md', async () => {
  const configs = await readConfigs()
  const declared = configs.flatMap(({ service, variables }) =>
    Object.values(variables).map(({ name, fallback }) => ({ service, name: String(name), fallback })),
  )
  const isVariable = (name: string) => /^(?:WEIR|OTEL)_/.test(name)
  const marked = namedRows(document('docs/configuration.md'), isVariable).flatMap(({ name, cells }) =>
    cells[2]?.includes('*secret*') ? [name] : [],
  )
  const names = [...new Set(declared.map(({ name }) => name))]
  /**
   * A row of a service's variable: name, services, meaning, default. Defaults that differ stand in the services' order.
   */
  const serviceRow = (name: string): Named => {
    const readers = declared.filter((one) => one.name === name)
    const defaults = [...new Set(readers.map(({ fallback }) => shownDefault(fallback)))]
    const isAll = readers.length === configs.length
    const services = isAll ? 'all' : readers.map(({ service }) => service).join(', ')
    return { name, cells: { 1: services, 3: defaults.join(', ') } }
  }

  test('has every variable of the code, with its services and its default, and no other', () => {
    const others = codeVariables(tree).filter((name) => !names.includes(name))
    const wanted = [...names.map(serviceRow), ...others.map((name) => ({ name }))]
    expect(formatFindings(compareRows(document('docs/configuration.md'), wanted, isVariable))).toEqual([])
  })

  test('marks the variables that are secrets, and no others', () => {
    const secrets = configs.flatMap(({ variables }) =>
      Object.values(variables).flatMap(({ name, isSecret }) => (isSecret === true ? [String(name)] : [])),
    )
    expect(marked.filter((name) => names.includes(name)).toSorted()).toEqual([...new Set(secrets)].toSorted())
  })

  test('no document names a variable that nothing reads', () => {
    const inTests = tree.filter(({ path }) => path.startsWith('test/') && path.endsWith('.ts'))
    const known = new Set([
      ...codeVariables(tree),
      ...names,
      ...marked.map((name) => `${name}_FILE`),
      ...inTests.flatMap(({ text }) => variablesIn(text)),
    ])
    const found = tree
      .filter(({ path }) => path.endsWith('.md'))
      .flatMap(({ path, text }) =>
        variablesIn(text)
          .filter((name) => !known.has(name))
          .map((what): Finding => ({ path, line: 0, rule: 'docs', what: `nothing reads ${what}` })),
      )
    expect(formatFindings(found)).toEqual([])
  })
})

describe('docs/errors.md', () => {
  test('has every error code, says whether to try again, and has no other', () => {
    const wanted = Object.entries(errorFacts).map(([name, { retryable }]) => ({
      name,
      cells: { 1: retryable ? 'yes' : 'no' },
    }))
    const isCode = (name: string) => /^[A-Z]+(?:_[A-Z]+)+$/.test(name)
    expect(formatFindings(compareRows(document('docs/errors.md'), wanted, isCode))).toEqual([])
  })

  test('no error code is left that nothing throws', () => {
    const texts = textsIn(tree, 'packages/core/src/errors.ts')
    expect(Object.keys(errorFacts).filter((code) => !texts.has(code))).toEqual([])
  })

  test('has every problem type that HTTP clients meet, and no other', () => {
    const words = new Set(argumentsOf(tree, 'problem'))
    const own = [...words].map((word) => ({ name: `urn:weir:problem:${word}` }))
    const drafts = argumentsOf(tree, 'draftProblem').map((word) => ({
      name: `https://iana.org/assignments/http-problem-types#${word}`,
    }))
    const isType = (name: string) => /^urn:|^https:/.test(name)
    expect(formatFindings(compareRows(document('docs/errors.md'), [...own, ...drafts], isType))).toEqual([])
  })
})

test('docs/monitoring.md has every metric that a service counts, and no other', () => {
  const wanted = codeMetrics(tree).map((name) => ({ name }))
  const isMetric = (name: string) => /^(?:weir|gen_ai)_[a-z0-9_]+$/.test(name)
  expect(formatFindings(compareRows(document('docs/monitoring.md'), wanted, isMetric))).toEqual([])
})

test('every path that a document names is there', () => {
  expect(formatFindings(checkPaths(tree))).toEqual([])
})

test('every link between documents leads somewhere', () => {
  expect(formatFindings(checkLinks(tree))).toEqual([])
})

test('every command that a document shows can be called', () => {
  const declaring = tree.filter(({ path }) => /^packages\/cli\/src\/(?:main|commands\/add-[\w-]+)\.ts$/.test(path))
  const main = declaring.map(({ text }) => text).join('\n')
  const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1] ?? '')
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(textOf('package.json'))
  const known = {
    commands: [...all(main, /\.command\('([\w-]+)'\)/g), 'test', 'bench', 'example', 'chart'],
    retired: Object.keys(retired),
    flags: all(main, /'(--[a-z-]+)/g),
    scripts: Object.keys(scripts),
    tiers: tierWords,
    benches: tree.flatMap(({ path }) => all(path, /^test\/bench\/([\w-]+)\.bench\.ts$/g)),
  }
  expect(known.commands).toContain('up')
  expect(known.tiers).toContain('unit')
  expect(formatFindings(checkCommands(tree, known))).toEqual([])
})

test("ARCHITECTURE.md's reading order leads through the services, the packages, the script and the tables", () => {
  const { headings, rows } = readMarkdown(document('ARCHITECTURE.md'))
  const [start, end] = headings.filter(({ text }, at) => {
    return /file by file|reading order/i.test(text) || /file by file|reading order/i.test(headings[at - 1]?.text ?? '')
  })
  const order = rows
    .filter(
      ({ line }) => line > (start?.line ?? Number.POSITIVE_INFINITY) && line < (end?.line ?? Number.POSITIVE_INFINITY),
    )
    .flatMap(({ cells }) => /`([^`]+)`/.exec(cells[1] ?? '')?.[1] ?? [])
  const paths = new Set(tree.map(({ path }) => path))
  expect(order.filter((path) => !paths.has(path))).toEqual([])
  for (const folder of ['services/', 'packages/', 'lua/', 'infra/']) {
    expect(order.some((path) => path.startsWith(folder))).toBe(true)
  }
})

test('docs/security.md has a row for every area and file that counts attempts, and the right sum', () => {
  const { rows } = readMarkdown(document('docs/security.md'))
  const counted = rows.filter(({ cells }) => cells.length === 4 && /^\**[\d,]+\**$/.test(cells[1] ?? ''))
  const attempts = counted.map(({ cells }) => Number((cells[1] ?? '').replaceAll(/\D/g, '')))
  const shown = counted
    .slice(0, -1)
    .map(({ cells }) => `${cells[0]} in ${/\]\(\.\.\/(.*)\)/.exec(cells[3] ?? '')?.[1]}`)
  const calls = tree.flatMap(({ path, text }) =>
    [...text.matchAll(/countAttempts\(\s*'([^'$]+)'/g)].map(([, area]) => `${area} in ${path}`),
  )
  expect(shown.toSorted()).toEqual(calls.toSorted())
  expect(attempts.slice(0, -1).reduce((sum, one) => sum + one, 0)).toBe(attempts.at(-1))
})

test('CHANGELOG.md has a place for what is not released yet', () => {
  const headings = readMarkdown(document('CHANGELOG.md')).headings.map(({ text }) => text)
  expect(headings).toContain('[Unreleased]')
})

describe('packages/client/README.md', () => {
  const readme = document('packages/client/README.md')

  test('shows every example as it is, in ten lines or so', () => {
    const examples = tree.filter(({ path }) => path.startsWith('packages/client/examples/'))
    expect(examples).toHaveLength(4)
    for (const { path, text } of examples) {
      // Its first line says what it is for, which is what stands around it there.
      const code = text.slice(text.indexOf('\n') + 1)
      expect([path, readme.text.includes(`\`\`\`js\n${code}\`\`\``)]).toEqual([path, true])
      expect([path, code.split('\n').filter((line) => line !== '').length <= 11]).toEqual([path, true])
    }
  })

  test('has every error code that the client throws', () => {
    const union =
      /WeirClientErrorCode =((?:\s+\| '\w+')+)/.exec(textOf('packages/client/src/client-error.ts'))?.[1] ?? ''
    const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code = '']) => code)
    expect(codes.length).toBeGreaterThan(5)
    const rows = readMarkdown(readme).rows.flatMap(({ cells: [first = ''] }) => first.match(/\w+/g) ?? [])
    expect(codes.filter((code) => !rows.includes(code))).toEqual([])
  })
})

test('every document is a page of the site, and every page of the site is a document', () => {
  const paths = tree.map(({ path }) => path).filter((path) => path.endsWith('.md'))
  const listed = parts.flatMap(({ pages }) => Object.values(pages))
  expect(paths.filter((path) => path.startsWith('docs/') && !isPage(path))).toEqual([])
  expect(listed.filter((path) => !paths.includes(path))).toEqual([])
})

test('docs/decisions/README.md lists every decision', () => {
  const pages = tree.flatMap(({ path }) => /^docs\/decisions\/(\d{4}-.*\.md)$/.exec(path)?.[1] ?? [])
  const listed = readMarkdown(document('docs/decisions/README.md')).links.map(({ text }) => text)
  expect(pages.filter((page) => !listed.includes(page))).toEqual([])
})
