import { describe, expect, test } from 'vitest'
import { assemble, readScript, withShebang } from './scripts.ts'

const from = (files: Record<string, string>) => (file: string) => files[file]

describe('assemble', () => {
  test('puts every file in once, before the file that needs it, in order of first mention', () => {
    const source = assemble(
      'scripts/main.lua',
      from({
        'scripts/main.lua': '-- main\n-- @include ../lib/a.lua\n-- @include ../lib/b.lua\nmain()\n',
        'lib/a.lua': '-- @include base.lua\na()\n',
        'lib/b.lua': '-- @include ./base.lua\n-- @include a.lua\nb()\n',
        'lib/base.lua': 'base()\n',
      }),
    )
    expect(source).toBe('-- main\nbase()\na()\nb()\nmain()\n')
  })

  test('names a cycle with the trail that leads into it', () => {
    const read = from({
      'main.lua': '-- @include a.lua\n',
      'a.lua': '-- @include b.lua\n',
      'b.lua': '-- @include a.lua\n',
    })
    expect(() => assemble('main.lua', read)).toThrow('main.lua -> a.lua -> b.lua -> a.lua')
  })

  test('names a missing file with the trail that leads to it', () => {
    const read = from({ 'main.lua': '-- @include lib/a.lua\n', 'lib/a.lua': '-- @include gone.lua\n' })
    expect(() => assemble('main.lua', read)).toThrow('no such Lua file: main.lua -> lib/a.lua -> lib/gone.lua')
  })

  test('takes a file as it is, also where it looks like a replacement pattern', () => {
    const read = from({ 'main.lua': '-- @include a.lua\n', 'a.lua': "local pattern = '$1 $& %d'\n" })
    expect(assemble('main.lua', read)).toBe("local pattern = '$1 $& %d'\n")
  })
})

describe('constants that TypeScript shares', () => {
  test('stand in a script as their numbers', () => {
    const source = 'if operation == operations.VOID then\n  return malformed.KEY\nend\n'
    expect(assemble('main.lua', from({ 'main.lua': source }))).toBe('if operation == 6 then\n  return -4\nend\n')
  })

  test('that do not exist are named by the error', () => {
    const read = from({ 'main.lua': 'return statuses.MAYBE\n' })
    expect(() => assemble('main.lua', read)).toThrow('script-protocol.ts has no statuses.MAYBE')
  })
})

describe('the shebang', () => {
  test('is the first line from Redis 7 on, and left out below', () => {
    expect(withShebang('return 1', 7)).toBe('#!lua\nreturn 1')
    expect(withShebang('return 1', 6)).toBe('return 1')
    expect(readScript('decide', 7).source.slice('#!lua\n'.length)).toBe(readScript('decide').source)
  })
})

/** All that decide.lua may call: commands and options of Redis 6.2. */
const allowedCommands = ['GET', 'GETRANGE', 'MGET', 'PEXPIREAT', 'SET', 'SETRANGE', 'TIME']

test('decide.lua has no include left over, and calls commands of Redis 6.2 only', () => {
  const { source } = readScript('decide')
  expect(source).not.toMatch(/@include/)
  expect(source).not.toMatch(/\b(?:operations|statuses|malformed|modes|phases|reserved_costs)\.[A-Z]/)
  const called = new Set([...source.matchAll(/redis\.p?call\('(\w+)'/g)].map(([, command]) => command))
  expect([...called].sort()).toEqual(allowedCommands)
  expect(source.match(/redis\.p?call\((?!')/g)).toBeNull()
})
