import { describe, expect, it } from 'vitest'
import { passThrough } from './pass-through.ts'

const message = (value: string | null, offset = '7') => ({
  offset,
  key: null,
  value: value === null ? null : Buffer.from(value),
})

describe('passThrough', () => {
  it('splices the place in Kafka into each record and parses nothing', () => {
    const { lines, rows, refused } = passThrough(3, [message('{"a":1}', '7'), message('{"b":  2}', '8')])
    expect(lines.toString()).toBe('{"a":1,"partition":3,"offset":7}\n{"b":  2,"partition":3,"offset":8}\n')
    expect([rows, refused]).toEqual([2, []])
  })

  it.each([
    ['no value', null],
    ['an empty value', ''],
    ['an empty object, which has no place for a comma', '{}'],
    ['a list', '[1]'],
    ['two lines in one value, which would forge a row', '{"a":1}\n{"a":2}'],
    ['text after the object', '{"a":1} '],
  ])('refuses %s and keeps the records around it', (_, bad) => {
    const { lines, rows, refused } = passThrough(0, [
      message('{"a":1}', '1'),
      message(bad, '2'),
      message('{"a":3}', '3'),
    ])
    expect(rows).toBe(2)
    expect(lines.toString().split('\n')).toHaveLength(3)
    expect(refused.map((letter) => letter.message.offset)).toEqual(['2'])
  })
})
