import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** A segment begins with this, so that a later layout can tell itself apart. */
export const segmentMagic = Buffer.from('WEIRJNL1')

/** Frames begin here; the rest of the head is zero. */
export const segmentHeadBytes = 16

/** A segment that is written full of zeros, under this name until it gets its number. */
export const spareName = 'spare'

/** Where a directory has the segment of this number. */
export const segmentPath = (directory: string, segment: number): string =>
  join(directory, `${String(segment).padStart(8, '0')}.seg`)

const pattern = /^(\d{8,})\.seg$/

/** Numbers of the segments in a directory, lowest first. */
export function segmentsIn(directory: string): number[] {
  return readdirSync(directory)
    .flatMap((name) => {
      const digits = pattern.exec(name)?.[1]
      return digits === undefined ? [] : [Number(digits)]
    })
    .sort((a, b) => a - b)
}
