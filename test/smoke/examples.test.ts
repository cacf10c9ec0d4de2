import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inProject, projectRoot } from '@weir/cli/project.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { runWeir } from '../support/weir-up.ts'
import { wholeWeir } from '../support/whole-weir.ts'

/** What each example prints behind its first line; a star stands for any text. */
const printed: Readonly<Record<string, readonly string[]>> = {
  nginx: [
    'nginx listens on *',
    'Without a key, then four times with one, which has a limit of three:',
    'GET /hello -> 401  RateLimit: "unauthenticated";r=0',
    'GET /hello -> 200  RateLimit: "example-nginx";r=2;t=20',
    'GET /hello -> 200  RateLimit: "example-nginx";r=1;t=40',
    'GET /hello -> 200  RateLimit: "example-nginx";r=0;t=60',
    'GET /hello -> 429  RateLimit: "example-nginx";r=0;t=20  Retry-After: 20',
    'The API has served 3 requests: GET /hello of shop-*',
    'Try it: curl -i *',
  ],
  fastify: [
    'The application packages/client/examples/fastify.mjs listens on *',
    'without a key: GET /hello -> 401  *',
    'ann, free: GET /hello -> 200  1 left',
    'ann, free: GET /hello -> 200  0 left',
    'ann, free: GET /hello -> 429  The limit example-fastify is used up. *',
    'bob, paid: GET /hello -> 200  3 left',
    'bob, paid: GET /hello -> 200  2 left',
    'bob, paid: GET /hello -> 200  1 left',
    'Try it: curl -i *',
  ],
  'ai-gateway': [
    '"Say hello in 40 words": * tokens left while it was written; it took 45',
    '"Explain a log in 600 words", streamed: * tokens left while it was written; it took 606',
    '"Write a story of 6000 words", streamed: * tokens left while it was written; it took 6006',
    '"Say good night in 40 words": 429 insufficient_quota: The limit example-tokens is used up. *',
    '$ ./weir usage --subject writer-* --unit tokens --by model,basis',
    'MODEL *',
    'small *',
    '*',
    '$ ./weir usage --subject writer-* --unit example_usd --by model',
    'MODEL *',
    'small  0.01328425 USD  3',
    '*',
    'Try it: curl -N *',
  ],
  otp: [
    ...[11, 12, 13].map((last) => `127.0.0.${last} guesses four codes -> 200 200 200 429`),
    '127.0.0.14 sends its first code -> 200',
    '$ ./weir blocks --subject shop-*',
    'UNTIL * REFUSED  ID',
    ...[13, 12, 11].map((last) => `* UTC  example-otp  shop-* ip=127.0.0.${last} * 1 *`),
    'nginx has the list: 127.0.0.12 -> 403, without a question to Weir',
    '$ ./weir blocks lift * --forget',
    'example-otp: block lifted',
    'example-otp: counts reset',
    '127.0.0.12 -> 200 again, and the others are blocked until two minutes have passed',
    'Try it: curl -X POST *',
  ],
  prepaid: [
    'Eleven calls of a customer with 10 credits a month leave: 9 8 7 6 5 4 3 2 1 0 refused',
    '$ ./weir alerts ls --subject customer-*',
    'TIME * SUBJECT * TYPE * WHAT * DELIVERIES * ID',
    '* UTC * weir.quota.reached  example-credits: 100%, 10 of 10 *',
    '* UTC * weir.quota.reached  example-credits: 80%, 8 of 10 *',
    "The customer's own page, for an hour: http://*/me#weir_portal_*",
    'Topped up by 5 credits, in force after * ms.',
    'The next call leaves: 4',
  ],
  'alerts-python': [
    'docs/alert-consumers/consume.py reads weir.alerts.v1 at *',
    'reader-* has used its quota of 10.',
    'python: {"id": *, "type": "weir.quota.reached", "subject": "reader-*, "used": 8, "percent": 80, *}',
    'python: {"id": *, "type": "weir.quota.reached", "subject": "reader-*, "used": 10, "percent": 100, *}',
    'Try it: ./weir example prepaid in a third terminal *',
  ],
}
const names = readdirSync(inProject('examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
  .map(({ name }) => name)

const weir = await wholeWeir()
const before = await policy()

async function policy(): Promise<unknown> {
  const headers = { authorization: `Bearer ${weir.line.adminToken}` }
  return (await fetch(`${weir.line.console}/v1/policy`, { headers })).json()
}

/** The words behind `./weir` of the command that the README shows. */
function commandOf(name: string): string[] {
  const readme = readFileSync(inProject('examples', name, 'README.md'), 'utf8')
  const [, command = ''] = /```sh\n\.\/weir (.*)\n```/.exec(readme) ?? []
  return [...command.split(' '), '--data', weir.dir]
}

const asPattern = (line: string) =>
  expect.stringMatching(new RegExp(`^${line.replaceAll(/[^\w*]/g, '\\$&').replaceAll('*', '.*')}$`))

test('every example has its folder, its command and its row', () => {
  const readme = readFileSync(inProject('examples/README.md'), 'utf8')
  const rows = [...readme.matchAll(/^\| \[`\.\/weir example (\S+)`\]/gm)].map(([, name]) => name)
  expect(rows.toSorted()).toEqual(names.toSorted())
  expect(Object.keys(printed).toSorted()).toEqual(names.toSorted())
})

test.each(names)('the example %s runs by the command of its README, and leaves the policy as it was', async (name) => {
  const checked = await runWeir(['check', '--policy', join(projectRoot, 'examples', name, 'weir.yaml')])
  expect([checked.code, checked.stderr]).toEqual([0, expect.any(String)])
  const { code, stdout, stderr } = await runWeir([...commandOf(name), '--once'])
  expect([code, stderr.replaceAll(/^weir: counted until .*\n/gm, '')]).toEqual([0, ''])
  const lines = [`In force for now: examples/${name}/weir.yaml`, ...(printed[name] ?? [])]
  // Alerts that other files raise may come while an example prints alerts.
  const own = stdout.split('\n').filter((line) => line !== '' && !/"subject": ?"demo/.test(line))
  expect(own).toEqual(lines.map(asPattern))
  expect(await policy()).toEqual(before)
})

test('an example goes on until Ctrl-C, and leaves the policy as it was', async () => {
  const child = spawnBound([inProject('weir'), ...commandOf('fastify')], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout?.on('data', (part: Buffer) => (text += part))
  await until(() => text.includes('Ctrl-C ends'))
  expect(JSON.stringify(await policy())).toContain('example-fastify-paid')
  const ended = once(child, 'exit')
  child.kill('SIGINT')
  expect(await ended).toEqual([0, null])
  expect(await policy()).toEqual(before)
})
