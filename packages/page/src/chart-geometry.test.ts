import { expect, it } from 'vitest'
import { fewSteps } from '../web/parts/chart-geometry.ts'

const series = (...lines: (number | null)[][]) =>
  lines.map((values, at) => ({ name: `g${at}`, kind: 'allowed', values }))

it.each([
  ['one step of a day', series([0, 0, 7, null]), [2]],
  ['two steps, of different lines', series([0, 3, 0, 0], [0, 0, 0, 2]), [1, 3]],
  ['three steps', series([1, 2, 3]), []],
  ['nothing', series([0, 0, null]), []],
  ['no line', [], []],
])('the values of %s are told where they are few', (_, lines, steps) => {
  expect(fewSteps(lines)).toEqual(steps)
})
