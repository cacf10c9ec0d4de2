import { rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { segmentPath, segmentsIn, spareName } from '../format/segment-files.ts'
import { FrameSource } from './frame-source.ts'

/**
 * Gives back the space that a dead process had taken ahead; else a process that dies every few seconds would fill the
 * disk with zeros.
 */
export function trimOrphan(directory: string): void {
  rmSync(join(directory, spareName), { force: true })
  const last = segmentsIn(directory).at(-1)
  if (last === undefined) return
  const source = new FrameSource(directory, last)
  while (source.next(undefined) !== undefined);
  truncateSync(segmentPath(directory, last), source.position.offset)
  source.close()
}
