import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'

/** Links to private copies of what the PATH lacks. */
export const binFolder = resolve(import.meta.dirname, '../../../.weir/programs/bin')

/** As Linux numbers a file system in memory. */
const tmpfs = 0x01021994

/** What tests get besides: the private copies, and folders on a disk, as an ingress refuses a journal in memory. */
export const testEnvironment = {
  PATH: `${binFolder}:${process.env.PATH}`,
  TMPDIR: statfsSync(tmpdir()).type === tmpfs ? '/var/tmp' : tmpdir(),
}
