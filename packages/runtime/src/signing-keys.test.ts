import { expect, it } from 'vitest'
import { signingKey, signingKeysOf } from './signing-keys.ts'

it('A variable of signing keys is empty, one key or two, each of at least 32 bytes', () => {
  const { parse } = signingKey({ name: 'WEIR_PORTAL_KEY', about: 'signs' })
  const [one, two] = ['a'.repeat(32), 'ü'.repeat(16)]
  for (const right of ['', one, `${one},${two}`]) expect(parse(right)).toMatchObject({ value: { text: right } })
  for (const wrong of ['a'.repeat(31), `${one},short`, `${one},`, `${one},${one},${one}`]) {
    expect(parse(wrong)).toEqual({ problem: expect.stringContaining('at least 32 characters') })
  }
  expect([signingKeysOf(''), signingKeysOf(`${one},${two}`)]).toEqual([[], [one, two]])
})
