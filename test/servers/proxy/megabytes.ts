import { Readable } from 'node:stream'

export const megabyte = 1_048_576

const piece = Buffer.alloc(65_536, 'weir')

/** A stream of so many bytes, made while it is read. */
export function streamOf(bytes: number): Readable {
  let left = bytes
  return new Readable({
    read() {
      if (left === 0) {
        this.push(null)
        return
      }
      const size = Math.min(left, piece.length)
      left -= size
      this.push(piece.subarray(0, size))
    },
  })
}
