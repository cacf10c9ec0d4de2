import { expect, it } from 'vitest'
import { csvOf } from './csv.ts'

it('Text that a spreadsheet would run as a formula is shown as text, and numbers are left alone', () => {
  const names = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '\0x', 'plain', '1-1']
  const csv = csvOf({ name: 'text', amount: 'exact' }, [
    ...names.map((name) => ({ name, amount: '-2.50' })),
    { name: 'no amount' },
  ])
  const cells = ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", '"\'\rx"', "'\0x", 'plain', '1-1']
  expect(csv).toBe(['name,amount', ...cells.map((one) => `${one},-2.50`), 'no amount,', ''].join('\r\n'))
})

it('Commas, quotes and line breaks stay within their cell', () => {
  expect(csvOf({ a: 'text', b: 'text' }, [{ a: 'x,y', b: 'say "it"\nnow' }])).toBe('a,b\r\n"x,y","say ""it""\nnow"\r\n')
})
