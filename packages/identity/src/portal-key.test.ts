import { expect, it } from 'vitest'
import { portalKeyProblem } from './portal-key.ts'

it('WEIR_PORTAL_KEY is empty, one key or two, each of at least 32 bytes', () => {
  const [one, two] = ['a'.repeat(32), 'ü'.repeat(16)]
  for (const right of ['', one, `${one},${two}`]) expect(portalKeyProblem(right)).toBeUndefined()
  for (const wrong of ['a'.repeat(31), `${one},short`, `${one},`, `${one},${one},${one}`]) {
    expect(portalKeyProblem(wrong)).toContain('at least 32 characters')
  }
})
