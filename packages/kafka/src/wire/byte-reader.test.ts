import { expect, it } from 'vitest'
import { ByteReader } from './byte-reader.ts'

it('Tagged fields that a compatible broker adds are skipped whole', () => {
  const reader = new ByteReader(Buffer.from([2, 0, 1, 9, 1, 2, 8, 8, 7]))
  reader.skipTags()
  expect(reader.bytes[reader.at]).toBe(7)
})
