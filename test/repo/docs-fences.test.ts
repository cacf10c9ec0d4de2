import { spawnSync } from 'node:child_process'
import { parsePolicy } from '@weir/policy/reader/parse-policy.ts'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { completePolicy } from '../support/docs/documented-policy.ts'
import { allFences, type Fence, fencesOf, placeOfFence } from '../support/docs/fences.ts'
import { tree } from './read-tree.ts'

/** Files that tests run as they are: what a page shows of them is checked with them. */
const files = tree.filter(({ path }) => /^docs\/(?:integrations|migrations)\/.+\/.+$/.test(path))
const inLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim()
const shown = files.map(({ text }) => inLine(text))
const isOfFile = ({ text }: Fence) => shown.some((one) => one.includes(inLine(text)))

const lines = (text: string) => text.split('\n').filter((line) => line !== '')
const syntaxOf = ({ text }: Fence) => lines(spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' }).stderr)

function policyProblems({ text }: Fence): readonly unknown[] {
  const read = parsePolicy(JSON.stringify(completePolicy(text)), 'fragment')
  return read.kind === 'problems' ? read.problems : []
}

/** Output and pictures: none of their lines is a command. */
const commandsIn = ({ text }: Fence) => lines(text).filter((line) => /^(?:\.\/weir|npm|curl|docker|kcat) /.test(line))

/**
 * What is wrong with a block, by its language. Those with a reason not to be run are read all the same. Commands, SQL
 * and nginx run in the tier servers, by `commands.test.ts` and `usage-recipes.test.ts`.
 */
const checks: Readonly<Record<string, (fence: Fence) => readonly unknown[]>> = {
  '': commandsIn,
  text: commandsIn,
  sh: syntaxOf,
  bash: (fence) => (fence.notRun === undefined ? ['run it as sh, or say why not'] : syntaxOf(fence)),
  sql: () => [],
  nginx: () => [],
  js: (fence) => (isOfFile(fence) ? [] : ['no file that a test runs has this']),
  json: ({ text }) => (typeof JSON.parse(text) === 'object' ? [] : ['no object']),
  yaml: (fence) => {
    if (fence.notRun !== undefined) return typeof parse(fence.text) === 'object' ? [] : ['no map']
    return isOfFile(fence) ? [] : policyProblems(fence)
  },
}

test.each(allFences.map((fence) => [placeOfFence(fence), fence] as const))('the code at %s is right', (_, fence) => {
  const check = checks[fence.language] ?? (() => ['nothing checks this language'])
  expect([fence.language, check(fence)]).toEqual([fence.language, []])
})

test('what is wrong in a block of code is found, and so is why one is not run', () => {
  const page =
    '- a list\n\n  ```yaml\n  limits:\n    minute: { size: -5 }\n  ```\n\n  <!-- not run: needs a moon -->\n  ```sh\n  if ./weir up\n  ```\n'
  const [yaml, sh, ...others] = fencesOf('page.md', page)
  expect(others).toEqual([])
  expect([yaml?.line, yaml?.notRun, yaml && checks.yaml?.(yaml)]).toEqual([
    4,
    undefined,
    expect.arrayContaining([expect.objectContaining({ path: 'limits.minute.size' })]),
  ])
  expect([sh?.line, sh?.notRun, sh && checks.sh?.(sh)]).toEqual([
    10,
    'needs a moon',
    [expect.stringContaining('unexpected end of file')],
  ])
  expect(completePolicy('version: 2\nroutes: [{ match: GET /x }]')).toMatchObject({
    version: 2,
    routes: [{ match: 'GET /x' }, { match: 'POST /v1/search' }],
    plans: { free: {} },
  })
})
