import { describe, expect, it } from 'vitest'
import { isOneObject } from './scan-object.ts'

const scan = (text: string) => {
  const bytes = Buffer.from(`<${text}>`)
  return isOneObject(bytes, 1, bytes.length - 1)
}

describe('isOneObject', () => {
  it.each([
    '{"a":1}',
    '{"a":[{"b":1},{"b":2}]}',
    '{"a":"}{"}',
    '{"a":"\\"},{\\""}',
    '{"a":{"b":{}}}',
    '{"a":"é\\u0000"}',
  ])('accepts %s as one object', (text) => expect(scan(text)).toBe(true))

  it.each([
    ['nothing', ''],
    ['an empty object, which has no place for a comma', '{}'],
    ['a list', '[1]'],
    ['two objects', '{"a":1}{"a":2}'],
    ['two objects with a comma', '{"a":1},{"a":2}'],
    ['two objects, the first of which hides its end between brackets in texts', '{"a":"[","b":1},{"c":"]","d":2}'],
    ['two lines', '{"a":1}\n{"a":2}'],
    ['a line break in a text', '{"a":"\n"}'],
    ['an escaped line break in a text', '{"a":"\\\n"}'],
    ['text after the object', '{"a":1} '],
    ['an object that does not end', '{"a":1'],
    ['a text that does not end', '{"a":"1}'],
  ])('refuses %s', (_, text) => expect(scan(text)).toBe(false))
})
