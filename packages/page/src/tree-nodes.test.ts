import { expect, test } from 'vitest'
import { nodesOf } from '../web/parts/tree-nodes.ts'

const row = (subject: string, parent: string, cost: number) => ({ subject, parent, cost: String(cost), denied: '1' })
const shown = (rows: readonly ReturnType<typeof row>[]) =>
  nodesOf(rows, 'acme', '').map(({ subject, depth, used }) => `${' '.repeat(depth)}${subject} ${used}`)

test('Each stands under its parent, who used most first, and those above have the sum', () => {
  const rows = [row('acme', '', 1), row('red', 'acme', 2), row('dana', 'red', 3), row('blue', 'acme', 4)]
  expect(shown([...rows, row('erin', 'red', 5)])).toEqual(['acme 15', ' red 10', '  erin 5', '  dana 3', ' blue 4'])
})

test('A team that calls nothing itself stands right below, with its members', () => {
  expect(shown([row('dana', 'red', 3), row('own', 'dana', 2)])).toEqual(['acme 5', ' red 5', '  dana 5', '   own 2'])
})

test('What was moved is counted once, also where two stood above each other in turn', () => {
  const moved = [row('red', 'east', 1), row('red', 'west', 2), row('dana', 'red', 4)]
  expect(shown([row('east', 'acme', 0), row('west', 'acme', 0), ...moved])[0]).toBe('acme 7')
  const turned = [row('red', 'acme', 1), row('red', 'blue', 2), row('blue', 'red', 4), row('blue', 'acme', 8)]
  expect(shown(turned)[0]).toBe('acme 15')
  expect(shown([row('red', 'blue', 2), row('blue', 'red', 4)])[0]).toBe('acme 6')
})
