import { expect, test } from 'vitest'
import { nodesOf } from '../web/parts/tree-nodes.ts'

const row = (subject: string, above: readonly string[], cost: number) => ({
  subject,
  parents: JSON.stringify(above),
  cost: String(cost),
  denied: '1',
})
const shown = (rows: readonly ReturnType<typeof row>[]) =>
  nodesOf(rows, 'acme', '').map(({ subject, depth, used }) => `${' '.repeat(depth)}${subject} ${used}`)

test('Each stands under its parent, who used most first, and those above have the sum', () => {
  const teams = [row('red', ['acme'], 2), row('blue', ['acme', 'group'], 4)]
  const members = [row('dana', ['red', 'acme'], 3), row('erin', ['red', 'acme'], 5)]
  const tree = ['acme 15', ' red 10', '  erin 5', '  dana 3', ' blue 4']
  expect(shown([row('acme', ['group'], 1), ...teams, ...members])).toEqual(tree)
})

test('A team that calls nothing itself stands above its members', () => {
  expect(shown([row('dana', ['red', 'east', 'acme'], 3)])).toEqual(['acme 3', ' east 3', '  red 3', '   dana 3'])
})

test('What was moved is counted once, where it was used', () => {
  const moved = [
    row('red', ['east', 'acme'], 1),
    row('red', ['west', 'acme'], 2),
    row('dana', ['red', 'east', 'acme'], 4),
  ]
  expect(shown(moved)).toEqual(['acme 7', ' east 5', '  red 5', '   dana 4', ' west 2', '  red 2'])
})
