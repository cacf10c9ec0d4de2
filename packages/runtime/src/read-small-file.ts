import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** The largest bundle of authorities that systems ship has 250 kB. */
const bytesMax = 1024 * 1024

/**
 * Reads the file of a secret or a certificate, also while the process runs. Throws a sentence if it is no regular file
 * or has more than 1 MiB: a pipe would block the whole process until another one writes to it.
 */
export function readSmallFile(file: string): string {
  const open = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const found = fstatSync(open)
    if (!found.isFile()) throw new Error(`${file} is not a regular file`)
    if (found.size > bytesMax) throw new Error(`${file} has more than ${bytesMax} bytes`)
    return readFileSync(open, 'utf8')
  } finally {
    closeSync(open)
  }
}
