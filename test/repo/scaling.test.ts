import { expect, test } from 'vitest'
import { textOf } from './read-tree.ts'
import { checkFormula, compute, type Values } from './rules/formulas.ts'
import { readMarkdown } from './rules/markdown.ts'

const page = 'docs/scaling.md'
const { rows, codeSpans } = readMarkdown({ path: page, text: textOf(page) })

const numberOf = (text: string) => Number(text.replaceAll(',', ''))
const constants = rows.flatMap(({ cells }) => {
  const [name = '', value = '', , source = '', row = '', column = ''] = cells
  const file = /\]\(([\w/-]+\.md)/.exec(source)?.[1]
  return cells.length === 6 && file !== undefined
    ? [{ name: name.replaceAll('`', ''), value, file: `docs/${file}`, row, column }]
    : []
})

interface Table {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** All tables of a page, with their heads. */
function tablesOf(text: string): Table[] {
  const cellsOf = (line: string) =>
    line
      .trim()
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim())
  return text
    .split(/\n(?!\|)/)
    .map((block) => block.split('\n').filter((line) => line.startsWith('|')))
    .flatMap(([head, , ...more]) => (head === undefined ? [] : [{ head: cellsOf(head), rows: more.map(cellsOf) }]))
}

/** Whether the page has this value: in the first cell with a number of the row, in the column, or in the words. */
function isOnPage({ value, file, row, column }: (typeof constants)[number]): boolean {
  const text = textOf(file)
  const numbersIn = (cell = '') => [...cell.matchAll(/\d[\d,]*(?:\.\d+)?/g)].map(([number]) => number)
  const cells = tablesOf(text).flatMap((table) => {
    const found = table.rows.find(([label]) => label === row)
    const at = table.head.findIndex((cell) => cell === column && column !== '')
    const cell = column === '' ? found?.slice(1).find((one) => numbersIn(one).length > 0) : found?.[at]
    return cell === undefined ? [] : [cell]
  })
  if (cells.some((cell) => numbersIn(cell)[0] === value)) return true
  return column === '' && text.replaceAll(/\s+/g, ' ').includes(row) && numbersIn(row).includes(value)
}

test('Every constant of docs/scaling.md is a figure of the page that it is from', () => {
  expect(constants.length).toBeGreaterThan(25)
  expect(constants.filter((one) => !isOnPage(one)).map(({ name }) => name)).toEqual([])
})

test('Every formula of docs/scaling.md has the result that it shows', () => {
  const values: Values = new Map(constants.map(({ name, value }) => [name, numberOf(value)]))
  const formulas = codeSpans.filter(({ text }) => text.includes(' = '))
  const problems = formulas.flatMap(({ text, line }) => {
    const problem = checkFormula(text, values)
    return problem === undefined ? [] : [`line ${line}: ${problem}`]
  })
  expect(formulas.length).toBeGreaterThan(50)
  expect(problems).toEqual([])
})

test('A wrong result, an unknown name and a formula that breaks off are found', () => {
  const values: Values = new Map([['rate', 100_000]])
  expect(compute('ceil((rate + 1) / 10^2) × 2 − 1', values)).toBe(2_001)
  expect(checkFormula('half = rate / 2 = 50,000', values)).toBeUndefined()
  expect(checkFormula('half × 3 / 1,000 = 151', values)).toBe('half × 3 / 1,000 = 151: it is 150')
  expect(checkFormula('rate / 3 = 33,333.3', values)).toBeUndefined()
  expect(checkFormula('share = 0.6', values)).toBeUndefined()
  expect(checkFormula('share = 0.7', values)).toContain('already')
  expect(() => checkFormula('none / 3 = 1', values)).toThrow('none is not known')
  expect(() => checkFormula('(rate = 1', values)).toThrow('no )')
})
