import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { check } from '@weir/cli/commands/check.ts'
import { noProgress } from '@weir/cli/terminal/progress.ts'
import { describe, expect, test } from 'vitest'
import { root, textOf, tree } from './read-tree.ts'
import { readMarkdown } from './rules/markdown.ts'

const folder = 'docs/migrations'
const guides = tree.map(({ path }) => path).filter((path) => /^docs\/migrations\/(?!README)[^/]+\.md$/.test(path))
const isPolicy = (path: string) => /^docs\/migrations\/.+\/(?:weir|proxy|shadow)\.yaml$/.test(path)
const policies = tree.map(({ path }) => path).filter(isPolicy)

/** Where the libraries declare their options: a file of the package, and the types in it. */
const declared: Readonly<Record<string, { readonly file: string; readonly types: RegExp }>> = {
  'express-rate-limit': { file: 'express-rate-limit/dist/index.d.ts', types: /^export type Options = /gm },
  'fastify-rate-limit': {
    file: '@fastify/rate-limit/types/index.d.ts',
    types: /^ {2}export interface (?:CreateRateLimitOptions|RateLimitOptions|RateLimitPluginOptions) [^{]*/gm,
  },
  'rate-limiter-flexible': {
    file: 'rate-limiter-flexible/types.d.ts',
    types: /^(?:export )?interface I(?:RateLimiter|RLWrapper)\w*Op(?:tion)?s\w* [^{]*/gm,
  },
}

/** The members of the braces that open at that place, without those of braces inside. */
function membersAt(text: string, open: number): string[] {
  let depth = 0
  let own = ''
  for (const letter of text.slice(open)) {
    if ('}>)]'.includes(letter)) depth -= 1
    if (depth === 1 || letter === '\n') own += letter
    if ('{<(['.includes(letter)) depth += 1
    if (depth === 0) break
  }
  return [...own.matchAll(/^\s*(\w+)\??(?::|\()/gm)].map((match) => match[1] ?? '')
}

function optionsOf({ file, types }: { readonly file: string; readonly types: RegExp }): readonly string[] {
  const text = readFileSync(join(root, 'test/node_modules', file), 'utf8')
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll('=>', '')
  const members = [...text.matchAll(types)].flatMap((match) => membersAt(text, match.index + match[0].length))
  return [...new Set(members)]
}

describe.each(Object.keys(declared))('the guide from %s', (name) => {
  const path = `${folder}/${name}.md`

  test('has a row for every option that the installed version declares', () => {
    const options = optionsOf(declared[name] ?? { file: '', types: /$^/g })
    expect(options.length).toBeGreaterThan(15)
    const shown = readMarkdown({ path, text: textOf(path) }).rows.flatMap(({ cells }) =>
      [...(cells[0] ?? '').matchAll(/`(\w+)/g)].map((match) => match[1] ?? ''),
    )
    expect(options.filter((option) => !shown.includes(option))).toEqual([])
  })

  test('shows only code that its files have', () => {
    const files = tree.filter((file) => file.path.startsWith(`${folder}/${name}/`)).map(({ text }) => text)
    const blocks = [...textOf(path).matchAll(/^```(?:js|yaml)\n([\s\S]*?)^```/gm)].map((match) => match[1] ?? '')
    expect(blocks.length).toBeGreaterThan(1)
    expect(blocks.filter((block) => !files.some((text) => text.includes(block)))).toEqual([])
  })
})

test('weir check accepts every policy of the guides', () => {
  expect(policies.length).toBeGreaterThanOrEqual(7)
  const said: string[] = []
  const report = (line: string) => void said.push(line)
  const context = {
    environment: {},
    cwd: root,
    print: () => {},
    report,
    signal: AbortSignal.abort(),
    progress: noProgress,
  }
  const refused = policies.filter((path) => !check({ policy: join(root, path), json: false }, context).ok)
  expect([refused, said]).toEqual([[], []])
})

test('Node parses every program of the guides', () => {
  const programs = tree.filter(({ path }) => /^docs\/migrations\/.+\.mjs$/.test(path))
  expect(programs.length).toBeGreaterThanOrEqual(7)
  for (const { path } of programs) execFileSync(process.execPath, ['--check', join(root, path)])
})

test('the list of guides names them all', () => {
  const index = textOf(`${folder}/README.md`)
  expect(guides.filter((path) => !index.includes(`(${path.slice(folder.length + 1)})`))).toEqual([])
})
