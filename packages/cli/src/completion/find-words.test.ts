import { Argument, Command, Option } from 'commander'
import { expect, test } from 'vitest'
import { findExpected } from './find-words.ts'

const program = new Command('weir')
const usage = program.command('usage').description('Who used what.')
usage.addOption(new Option('--format <format>').choices(['csv', 'jsonl']))
usage.option('--not-key-id <value...>').option('--compare [time]').option('--limit <n>').option('--json')
usage.option('--output <file>')
const keys = program.command('keys').description('Keys.')
keys.command('revoke').argument('<id>')
program.command('hidden', { hidden: true })
program.command('import').argument('<file...>')
program.command('completion').addArgument(new Argument('<shell>').choices(['bash', 'zsh']))

const texts = (...typed: string[]) => {
  const expected = findExpected(program, typed)
  return expected.kind === 'words' ? expected.words.map(({ text }) => text) : expected
}

test.each([
  [[''], ['usage', 'keys', 'import', 'completion', 'help']],
  [
    ['keys', ''],
    ['revoke', 'help'],
  ],
  [
    ['usage', '--'],
    ['--format', '--not-key-id', '--compare', '--limit', '--json', '--output', '--help'],
  ],
  [
    ['usage', '--json', '--'],
    ['--format', '--not-key-id', '--compare', '--limit', '--output', '--help'],
  ],
  [
    ['usage', '--format', ''],
    ['csv', 'jsonl'],
  ],
  [
    ['usage', '--format=c'],
    ['--format=csv', '--format=jsonl'],
  ],
  [
    ['usage', '--compare', '--f'],
    ['--format', '--not-key-id', '--limit', '--json', '--output', '--help'],
  ],
  [
    ['usage', '--not-key-id', 'a', '--not'],
    ['--format', '--not-key-id', '--compare', '--limit', '--json', '--output', '--help'],
  ],
  [['usage', '--limit', ''], []],
  [
    ['completion', ''],
    ['bash', 'zsh'],
  ],
  [['completion', 'bash', ''], []],
  [['usage', '--output', 'x'], { kind: 'file', before: '' }],
  [['import', 'a.yaml', ''], { kind: 'file', before: '' }],
  [['usage', '--not-key-id', 'a', 'b'], { kind: 'value', of: 'key-id', before: '' }],
  [['usage', '--not-key-id=a'], { kind: 'value', of: 'key-id', before: '--not-key-id=' }],
  [['keys', 'revoke', ''], { kind: 'value', of: 'keys revoke id', before: '' }],
])('what may come at the end of %j follows from the commands', (typed, expected) => {
  expect(texts(...typed)).toEqual(expected)
})
