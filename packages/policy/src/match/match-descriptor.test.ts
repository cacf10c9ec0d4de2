import { expect, test } from 'vitest'
import { requirePolicy } from '../reader/require-policy.ts'
import { attributesOfKeys, createDescriptorMatcher, descriptorSegment } from './match-descriptor.ts'

const entries = (text: string) =>
  text.split(' ').map((pair) => {
    const [key = '', value = ''] = pair.split('=')
    return { key, value }
  })

function matcherOf(...matches: readonly string[]) {
  const routes = matches.map((match) => `  - { match: ${JSON.stringify(`DESCRIPTOR ${match}`)} }`).join('\n')
  const { match, knows } = createDescriptorMatcher(requirePolicy(`version: 1\nroutes:\n${routes}`, 'weir.yaml').routes)
  const found = (wanted: ReturnType<typeof entries>) => match('d', wanted)?.template.replace('DESCRIPTOR /d/', '')
  return {
    knows,
    find: (text: string) => found(entries(text)),
    findValue: (value: string) => found([{ key: 'k', value }]),
  }
}

test('a written value wins over a prefix, the longer prefix over the shorter, and a prefix over any value', () => {
  const { find } = matcherOf('/d/k/:any', '/d/k/v*', '/d/k/val*', '/d/k/value')
  expect(['k=value', 'k=values', 'k=vow', 'k=other'].map(find)).toEqual(['k/value', 'k/val*', 'k/v*', 'k/:any'])
})

test('a descriptor matches only as many entries as the route has', () => {
  const { find } = matcherOf('/d/a/1', '/d/a/2/b/:b')
  expect(['a=1', 'a=1 b=1', 'a=2', 'a=2 b=1', 'a=2 b=1 c=1', 'b=1'].map(find)).toEqual([
    'a/1',
    undefined,
    undefined,
    'a/2/b/:b',
    undefined,
    undefined,
  ])
})

test('if the most specific prefix leads to no route, the next one is tried', () => {
  const { find } = matcherOf('/d/a/1/b/1', '/d/a/:a/b/:b')
  expect(['a=1 b=1', 'a=1 b=2'].map(find)).toEqual(['a/1/b/1', 'a/:a/b/:b'])
})

test('any text can be a key or a value, and matches only itself', () => {
  const texts = ['/api/v1', '50.0.0.5', 'a b', '*', 'x*', ':y', '%41', "it's (so)", '', '..', 'ü']
  const { findValue } = matcherOf(...texts.map((text) => `/d/k/${descriptorSegment(text)}`))
  for (const text of texts) expect(findValue(text), text).toBe(`k/${descriptorSegment(text)}`)
  expect(['A', 'xy', '/api'].map(findValue)).toEqual([undefined, undefined, undefined])
})

test('a matcher knows the domains that have routes', () => {
  const { knows } = matcherOf('/d/k/v', '/e%2Ff/k/v')
  expect(['d', 'e/f', 'e', 'k'].map(knows)).toEqual([true, true, false, false])
})

test('entries with a repeated key are attributes of their own', () => {
  expect(attributesOfKeys(['k', 'user', 'k', 'k'])).toEqual(['k', 'user', 'k#2', 'k#3'])
})
