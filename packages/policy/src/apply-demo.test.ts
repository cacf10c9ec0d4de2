import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { applyDemo } from './apply-demo.ts'
import type { Policy } from './policy.ts'
import { parsePolicy } from './reader/parse-policy.ts'

const facts = {
  demoKeySha256: '1'.repeat(64),
  demoSmallKeySha256: 'b'.repeat(64),
  upstreamUrl: 'http://127.0.0.1:40001',
  receiverUrl: 'http://127.0.0.1:40002/',
}
const shipped = readFileSync(new URL('../../../weir.yaml', import.meta.url), 'utf8')

function parsed(text: string): Policy {
  const result = parsePolicy(text, 'weir.yaml')
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  return result.policy
}

test('the shipped policy gets both keys and both addresses, and nothing else changes', () => {
  const { text, subjects } = applyDemo(shipped, facts)
  const before = parsed(shipped)
  const after = parsed(text)
  expect(subjects).toEqual(['demo', 'demo-small'])
  expect([...after.keys.values()].map(({ sha256, subject }) => [sha256, subject.id])).toEqual([
    [facts.demoKeySha256, 'demo'],
    [facts.demoSmallKeySha256, 'demo-small'],
  ])
  expect(after.upstreams.get('demo')).toEqual({
    name: 'demo',
    url: facts.upstreamUrl,
    hosts: ['*'],
    timeoutMs: 30_000,
    keepInPath: [],
    preserveHost: false,
  })
  expect(after.endpoints.get('demo')).toMatchObject({ url: facts.receiverUrl })
  expect({ ...after, keys: 0, upstreams: 0, endpoints: 0 }).toEqual({ ...before, keys: 0, upstreams: 0, endpoints: 0 })
  expect(text).toContain('# Who is limited and metered.')
})

test('the demo applied twice is as the demo applied once', () => {
  const once = applyDemo(shipped, facts).text
  expect(applyDemo(once, facts).text).toBe(once)
})

test('keys and addresses of the operator stay', () => {
  const own = `
version: 1
plans: { p: { limits: [] } }
upstreams: { demo: { url: "http://api.internal:9000" } }
subjects:
  demo:
    plan: p
    keys:
      - sha256: ${'c'.repeat(64)}
        id: mine
endpoints: { demo: { url: "https://hooks.example.com/", secretEnv: S } }
`
  const { text, subjects } = applyDemo(own, facts)
  const policy = parsed(text)
  expect(subjects).toEqual(['demo'])
  expect([...policy.keys.keys()]).toEqual(['c'.repeat(64), facts.demoKeySha256])
  expect(policy.upstreams.get('demo')?.url).toBe('http://api.internal:9000')
  expect(policy.endpoints.get('demo')).toMatchObject({ url: 'https://hooks.example.com/' })
})

test.each([['version: 1\n'], ['version: 1\nupstreams:\n'], ['version: 1\nupstreams: {}\n'], ['{"version": 1}']])(
  'a policy without upstreams (%j) sends everything to the demo API',
  (text) => {
    const applied = applyDemo(text, facts)
    expect(applied.subjects).toEqual([])
    expect([...parsed(applied.text).upstreams.values()]).toEqual([
      { name: 'demo', url: facts.upstreamUrl, hosts: ['*'], timeoutMs: 30_000, keepInPath: [], preserveHost: false },
    ])
  },
)

test('a policy with upstreams of its own gets no demo API, so that requests never go astray', () => {
  const { text } = applyDemo('version: 1\nupstreams: { a: { url: "http://a", hosts: [a] } }\n', facts)
  expect([...parsed(text).upstreams.keys()]).toEqual(['a'])
})

test('a text that is no policy comes back as it was, for the parser to refuse', () => {
  for (const text of ['', 'plans: [', '[]', '- 1']) expect(applyDemo(text, facts)).toEqual({ text, subjects: [] })
})
