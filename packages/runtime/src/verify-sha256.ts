import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Rejects unless the folder holds exactly the files of the list, byte for byte. The list has the form of `sha256sum`: a
 * hash, two blanks and a name a line.
 */
export async function verifySha256(folder: string, listFile: string): Promise<void> {
  const lines = (await readFile(listFile, 'utf8')).trim().split('\n')
  const wanted = new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]))
  for (const name of new Set([...(await readdir(folder)), ...wanted.keys()])) {
    const hash = wanted.get(name)
    if (hash === undefined) throw new Error(`${name} was fetched, and ${listFile} does not name it. It is not used`)
    const bytes = await readFile(join(folder, name)).catch((cause: unknown) => {
      throw new Error(`${name}, which ${listFile} names, was not fetched`, { cause })
    })
    const found = createHash('sha256').update(bytes).digest('hex')
    if (found === hash) continue
    const advice = 'It is not used: ask who changed it, and delete it from the local Maven repository'
    throw new Error(`${name} is not the file that ${listFile} pins: its sha256 is ${found} and not ${hash}. ${advice}`)
  }
}
