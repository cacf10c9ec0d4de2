import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { scriptConstants } from '@weir/core/limits/script-protocol.ts'

const luaDir = join(import.meta.dirname, '../../../lua')

/** A script as Redis knows it: by the SHA-1 of its source. */
export interface Script {
  readonly source: string
  readonly sha1: string
}

/** The files of lua/scripts. */
export type ScriptName = 'decide' | 'settle' | 'pause' | 'raise-to-floor' | 'forget' | 'count-processes'

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

const include = /^[ \t]*-- @include (\S+)[ \t]*\n/gm

/** A constant that TypeScript shares, such as `operations.PEEK`. */
const constant = new RegExp(String.raw`\b(${Object.keys(scriptConstants).join('|')})\.([A-Z_]+)\b`, 'g')

function constantText(text: string, table: string, name: string): string {
  const value = scriptConstants[table]?.[name]
  if (value === undefined) throw new Error(`packages/core/src/limits/script-protocol.ts has no ${text}`)
  return String(value)
}

/** `../lib/clock.lua` as `scripts/decide.lua` names it is `lib/clock.lua`. */
function resolveBeside(file: string, path: string): string {
  const parts = file.split('/').slice(0, -1)
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '.') parts.push(part)
  }
  return parts.join('/')
}

/**
 * Makes one script of its files: every `-- @include PATH` line becomes that file, each once and in order of first
 * mention, and every shared constant becomes its number, so that naming it costs a call nothing. Throws for a constant
 * that does not exist, and with the trail of includes for a cycle or a missing file.
 */
export function assemble(entry: string, read: (file: string) => string | undefined): string {
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): string => {
    if (trail.includes(file)) throw new Error(`Lua files include each other: ${[...trail, file].join(' -> ')}`)
    if (done.has(file)) return ''
    const text = read(file)
    if (text === undefined) throw new Error(`no such Lua file: ${[...trail, file].join(' -> ')}`)
    const body = text.replace(include, (_, path: string) => visit(resolveBeside(file, path), [...trail, file]))
    done.add(file)
    return body
  }
  return visit(entry, []).replace(constant, constantText)
}

/**
 * From Redis 7 on a shebang makes the server refuse the script before its first line when it is out of memory; below 7
 * it is a syntax error.
 */
export const withShebang = (source: string, redisMajor: number): string =>
  redisMajor >= 7 ? `#!lua\n${source}` : source
