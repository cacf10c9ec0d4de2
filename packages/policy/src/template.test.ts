import { expect, test } from 'vitest'
import { fillTemplate, namesInTemplate } from './template.ts'

const values = { limit: 'minute', reason: 'limit', retry_after: '7', decision: 'id' }

test.each([
  ['{"error":"{{limit}}","in":{{retry_after}},"id":"{{decision}}"}', '{"error":"minute","in":7,"id":"id"}'],
  ['{{limit}}{{limit}} {{reason}}', 'minuteminute limit'],
  ['{limit} {{ limit }} {{other}} {{toString}}', '{limit} {{ limit }} {{other}} {{toString}}'],
  ['$& $1 plain', '$& $1 plain'],
])('%s is filled in', (template, text) => {
  expect(fillTemplate(template, values)).toBe(text)
})

test('a value is never read as a template', () => {
  expect(fillTemplate('{{limit}} {{reason}}', { ...values, limit: '{{decision}}' })).toBe('{{decision}} limit')
})

test('names are found as they are written', () => {
  expect(namesInTemplate('a {{limit}} b {{ x }} {c} {{}}')).toEqual(['limit', ' x ', ''])
})
