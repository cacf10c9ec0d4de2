import { ServerException } from '../engine/exception.ts'

const beyond = [
  // Words of clients that write and read files, the scalar function, and engines that take a path or run a text.
  /\b(?:file|filelog|infile|outfile|embeddedrocksdb|queryrunner|executable|executablepool)\b/i,
  // Disks and backups at other places, table functions whose columns' defaults would be SQL in a computed string, and
  // SQLite, which makes its file before the engine looks for the grant. A comment may stand before the bracket, so one
  // is taken for it.
  /\b(?:disk|s3|azureblobstorage|hdfs|sqlite|format|(?:sqlstandard)?values|null|generaterandom|fuzzjson)\b(?:[^\x21-\x7e]|["`])*(?:\(|--|#|\/[/*])/i,
  // SQL as a value, which metering needs: written out it has been looked at, by a parameter it would not have been.
  /\badditional_table_filters\b(?!\s*=\s*\{\s*')/i,
]
/** Deeper than any client's quoting; each level of quotes adds one. */
const escapedLevelsMax = 8

const unescaped = (sql: string): string =>
  sql.replace(/\\x([0-9a-fA-F]{2})|\\N/g, (_, hex?: string) =>
    hex === undefined ? '' : String.fromCharCode(Number.parseInt(hex, 16)),
  )

/**
 * Refuses what would reach beyond the database and what the engine has no grant for. It looks at the whole text,
 * strings and comments included: what they are is the engine's to say, and a quoted name may hold escapes. A caller
 * that needs one of the words as a value passes it as a parameter, which is never run.
 */
export function refuseBeyondDatabase(sql: string, settings: Readonly<Record<string, string>>): void {
  let text = [sql, ...Object.values(settings)].join('\n')
  for (let level = 0; level <= escapedLevelsMax; level++) {
    for (const pattern of beyond) {
      const found = pattern.exec(text)?.[0]
      if (found !== undefined) throw refused(found)
    }
    const next = unescaped(text)
    if (next === text) return
    text = next
  }
  throw refused('escapes within escapes')
}

function refused(what: string): ServerException {
  const advice = 'pass a value as a parameter ({name:String}), or use a ClickHouse server'
  const text = `Weir's local ClickHouse reaches nothing beyond its database, so "${what}" may not stand in a statement; ${advice}`
  return new ServerException(497, `Code: 497. DB::Exception: ${text}. (ACCESS_DENIED)`)
}
