import { fdatasync, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'

const writeLater = promisify(write)
const syncLater = promisify(fdatasync)

/** The calls by which frames reach the disk; a test replaces it by one that is full, slow or broken. */
export interface Disk {
  /** How many bytes it took, which may be fewer. */
  writeSync(fd: number, bytes: Buffer, from: number, length: number, position: number): number
  write(fd: number, bytes: Buffer, from: number, length: number, position: number): Promise<number>
  sync(fd: number): Promise<void>
}

/** The disk of production. */
export const realDisk: Disk = {
  writeSync,
  write: async (fd, bytes, from, length, position) =>
    (await writeLater(fd, bytes, from, length, position)).bytesWritten,
  sync: syncLater,
}
