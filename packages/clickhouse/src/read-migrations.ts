import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface Migration {
  /** From 1, without a hole: the number that the file name begins with. */
  readonly number: number
  readonly name: string
  /** SHA-256 of the file: an applied migration never changes. */
  readonly checksum: string
  /** Each safe to run again. */
  readonly statements: readonly string[]
}

const fileName = /^(\d{4})_([a-z0-9_]+)\.sql$/

/** Cuts at semicolons that end a line, and leaves comment lines out. */
function splitStatements(sql: string): string[] {
  const code = sql
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('--'))
    .join('\n')
  return code
    .split(/;[ \t]*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}

/** Reads all migrations of a folder in order. Throws if a file is stray, or a number missing or there twice. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const files = (await readdir(folder)).sort()
  return Promise.all(
    files.map(async (file, index) => {
      const match = fileName.exec(file)
      const number = Number(match?.[1])
      if (match === null || number !== index + 1) {
        throw new Error(`${join(folder, file)}: migrations are named 0001_what.sql and numbered without a hole`)
      }
      const text = await readFile(join(folder, file), 'utf8')
      const checksum = createHash('sha256').update(text).digest('hex')
      return { number, name: match[2] ?? '', checksum, statements: splitStatements(text) }
    }),
  )
}
