import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { checkConfig, readConfig, secret, text, url } from './read-config.ts'
import { readSecret } from './secret.ts'

const variables = {
  password: secret(text({ name: 'WEIR_PASSWORD', about: 'password', fallback: '' })),
  address: secret(url({ name: 'WEIR_ADDRESS', about: 'address', protocols: ['redis:'] })),
}
const right = { WEIR_ADDRESS: 'redis://h' }

function fileWith(content: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'weir-secret-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'secret')
  writeFileSync(file, content)
  return file
}

const problemsOf = (environment: Record<string, string>) => {
  const result = checkConfig(variables, environment)
  return result.kind === 'problems' ? result.problems : []
}

it('is read from its variable, and is empty for none', () => {
  const { password, address } = readConfig(variables, right)
  expect([readSecret(password), readSecret(address)]).toEqual(['', 'redis://h'])
})

it('is read from its file as it is now, without the line feed at its end', () => {
  const file = fileWith('first\n')
  const { password } = readConfig(variables, { ...right, WEIR_PASSWORD_FILE: file })
  expect(readSecret(password)).toBe('first')
  writeFileSync(file, 'second ')
  expect(readSecret(password)).toBe('second ')
  rmSync(file)
  expect(() => readSecret(password)).toThrow('WEIR_PASSWORD_FILE names a file that cannot be read')
})

it('has problems that name the variable and never the text', () => {
  expect(problemsOf({ ...right, WEIR_PASSWORD: 'a', WEIR_PASSWORD_FILE: '/b' })).toEqual([
    'WEIR_PASSWORD and WEIR_PASSWORD_FILE are both set',
  ])
  expect(problemsOf({ ...right, WEIR_PASSWORD_FILE: '/not/there' })).toEqual([
    expect.stringMatching(/^WEIR_PASSWORD_FILE names a file that cannot be read \(ENOENT/),
  ])
  expect(problemsOf({ WEIR_ADDRESS_FILE: fileWith('http://user:hidden@h') })).toEqual([
    'WEIR_ADDRESS_FILE names a file whose content must be a URL that begins with redis://, but is not',
  ])
})

it.for<[why: string, make: (file: string) => void]>([
  ['is empty', (file) => writeFileSync(file, '\n')],
  ['is not a regular file', (file) => mkdirSync(file)],
  ['is not a regular file', (file) => execFileSync('mkfifo', [file])],
  [
    'has more than 1048576 bytes',
    (file) => {
      writeFileSync(file, '')
      truncateSync(file, 100_000_000)
    },
  ],
])('that %s is neither waited for nor taken, at the start and later', ([why, make]) => {
  const file = fileWith('first')
  const environment = { ...right, WEIR_PASSWORD_FILE: file }
  const { password } = readConfig(variables, environment)
  rmSync(file)
  make(file)
  const problem = `WEIR_PASSWORD_FILE names a file that cannot be read (${file} ${why})`
  expect(() => readSecret(password)).toThrow(problem)
  expect(problemsOf(environment)).toEqual([problem])
})
