import { expect, test } from 'vitest'
import { encodeKeyPart, keyPartLengthMax } from './key-encoding.ts'

test.each([
  ['acme', 'acme'],
  ['A_z-09', 'A_z-09'],
  ['', ''],
  ['ip:192.0.2.1', 'ip%3A192%2E0%2E2%2E1'],
  ['{a}:b', '%7Ba%7D%3Ab'],
  ["!'()*.~", '%21%27%28%29%2A%2E%7E'],
  ['100%', '100%25'],
  ['é', '%C3%A9'],
  ['\ud800', '%EF%BF%BD'],
])('%j is written %s', (text, encoded) => {
  expect(encodeKeyPart(text)).toBe(encoded)
})

test('every character but letters, digits, _ and - is encoded, and two texts never meet', () => {
  const seen = new Set<string>()
  for (let code = 0; code < 0x3000; code += 1) {
    const encoded = encodeKeyPart(String.fromCodePoint(code))
    expect(encoded).toMatch(/^(?:[A-Za-z0-9_-]|(?:%[0-9A-F]{2})+)$/)
    seen.add(encoded)
  }
  expect(seen.size).toBe(0x3000)
})

test('a text over the bound is refused instead of becoming a huge key', () => {
  expect(encodeKeyPart('a'.repeat(keyPartLengthMax))).toHaveLength(keyPartLengthMax)
  expect(() => encodeKeyPart('a'.repeat(keyPartLengthMax + 1))).toThrow(RangeError)
})
