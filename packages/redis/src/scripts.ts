import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { assemble, withShebang } from './assemble.ts'

const luaDir = join(import.meta.dirname, '../../../lua')

/** A script as Redis knows it: by the SHA-1 of its source. */
export interface Script {
  readonly source: string
  readonly sha1: string
}

/** The files of lua/scripts. */
export type ScriptName = 'decide' | 'settle' | 'pause' | 'raise-to-floor' | 'count-processes'

/** Reads a script for a server of this major version; every version runs the script for 6. */
export function readScript(name: ScriptName, redisMajor = 6): Script {
  const assembled = assemble(`scripts/${name}.lua`, (file) => {
    try {
      return readFileSync(join(luaDir, file), 'utf8')
    } catch {
      return undefined // assemble names it, with the trail that led there
    }
  })
  const source = withShebang(assembled, redisMajor)
  return { source, sha1: createHash('sha1').update(source).digest('hex') }
}

/** A test's time as scripts take it; empty for Redis's own clock. */
export const scriptTime = (nowMs: number | undefined): string =>
  nowMs === undefined ? '' : String(Math.round(nowMs * 1_000))
