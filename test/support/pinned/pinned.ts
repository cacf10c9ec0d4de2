import { join } from 'node:path'

/**
 * What pip is told, to fetch one package of this folder: exactly the version of its file, in one of the files whose
 * hashes stand there (every platform's). pip stops at any other with the two hashes.
 */
export const pinned = (name: string): readonly string[] => [
  '--quiet',
  '--no-deps',
  '--require-hashes',
  '--requirement',
  join(import.meta.dirname, `${name}.txt`),
]
