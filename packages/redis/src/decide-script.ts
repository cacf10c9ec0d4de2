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

/** decide.lua for a server of this major version; 6 for one that has not said yet, which every version runs. */
export const readDecideScript = (redisMajor: number): Script => readScript('scripts/decide.lua', redisMajor)

/** settle.lua, in the shape that every version of Redis runs. */
export const readSettleScript = (): Script => readScript('scripts/settle.lua', 6)

/** pause.lua, in the same. */
export const readPauseScript = (): Script => readScript('scripts/pause.lua', 6)

function readScript(entry: string, redisMajor: number): Script {
  const assembled = assemble(entry, (file) => {
    try {
      return readFileSync(join(luaDir, file), 'utf8')
    } catch {
      return undefined // assemble names it, with the trail that led there
    }
  })
  const source = withShebang(assembled, redisMajor)
  return { source, sha1: createHash('sha1').update(source).digest('hex') }
}
