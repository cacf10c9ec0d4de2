import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** The largest bundle of authorities that systems ship has 250 kB. */
const bytesMax = 1024 * 1024

/**
 * The text of a secret's or a certificate's file, which is read again while the process runs. Throws a sentence for a
 * file that is no regular one or has more than 1 MiB: a pipe would hold up the whole process until somebody writes to
 * it.
 */
export function readSmallFile(file: string): string {
  const open = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const found = fstatSync(open)
    if (!found.isFile()) throw new Error(`${file} is no regular file`)
    if (found.size > bytesMax) throw new Error(`${file} has more than ${bytesMax} bytes`)
    return readFileSync(open, 'utf8')
  } finally {
    closeSync(open)
  }
}
