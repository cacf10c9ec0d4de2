import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { expect, it } from 'vitest'
import { forScreen } from './screen.ts'

const screen = (isTTY: boolean) => Object.assign(new PassThrough(), { isTTY, columns: 30 })
const plain = (lines: string) => stripVTControlCharacters(forScreen(lines, screen(true)))

it('a terminal gets prose broken between words; tables, JSON and what is piped stay as they are', () => {
  const prose = 'It would have been admitted after a wait of 19.9 s, or at a lower cost.'
  expect(plain(prose)).toBe('It would have been admitted\n  after a wait of 19.9 s, or\n  at a lower cost.')
  for (const line of ['SUBJECT  UNITS  DECISIONS  REFUSED', `{"text":"${prose}"}`, 'x'.repeat(50)])
    expect(plain(line)).toBe(line)
  expect(forScreen(prose, screen(false))).toBe(prose)
})
