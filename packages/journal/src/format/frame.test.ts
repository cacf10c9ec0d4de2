import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { FrameBuffer, type FrameKind, frameAt, frameKinds } from './frame.ts'

// The disk is the real one; other work on the machine may slow it down.
vi.setConfig({ testTimeout: 60_000 })

const kinds: FrameKind[] = Object.values(frameKinds)

const frames = fc.array(
  fc.record({
    kind: fc.constantFrom(...kinds),
    topic: fc.nat(255),
    partition: fc.nat(65_535),
    seq: fc.nat(Number.MAX_SAFE_INTEGER),
    key: fc.string({ unit: 'grapheme', maxLength: 40 }),
    value: fc.string({ unit: 'grapheme', maxLength: 300 }),
  }),
  { minLength: 1, maxLength: 20 },
)

function written(some: typeof frames extends fc.Arbitrary<infer T> ? T : never): Buffer {
  const buffer = new FrameBuffer(64 * 1024)
  for (const { key, value, ...head } of some) {
    const keyBytes = Buffer.byteLength(key)
    buffer.put(head, 1_700_000_000_000.5, 3, key, keyBytes, value, keyBytes + Buffer.byteLength(value))
  }
  return Buffer.from(buffer.bytes.subarray(0, buffer.length))
}

test('A frame is read back as it was written, whatever its characters are', () => {
  fc.assert(
    fc.property(frames, (some) => {
      const bytes = written(some)
      let at = 0
      for (const { kind, topic, partition, seq, key, value } of some) {
        const found = frameAt(bytes, at)
        if (found.kind !== 'frame') throw new Error(found.kind)
        expect(found.frame).toMatchObject({ kind, topic, partition, seq, epoch: 3, appendedMs: 1_700_000_000_000.5 })
        expect(found.frame.key.toString()).toBe(key)
        expect(found.frame.value.toString()).toBe(value)
        at = found.next
      }
      expect(at).toBe(bytes.length)
    }),
  )
})

test('a frame with any one byte changed is no frame, and a part of one is short', () => {
  fc.assert(
    fc.property(frames, fc.nat(), fc.integer({ min: 1, max: 255 }), (some, where, change) => {
      const bytes = written(some.slice(0, 1))
      expect(frameAt(bytes.subarray(0, where % bytes.length), 0).kind).toBe('short')
      const at = where % bytes.length
      bytes.writeUInt8((bytes.readUInt8(at) ^ change) & 0xff, at)
      expect(frameAt(bytes, 0).kind).not.toBe('frame')
    }),
  )
})

test('A part of a segment that was never written reads as zeros', () => {
  expect(frameAt(Buffer.alloc(100), 0)).toEqual({ kind: 'zeros' })
})
