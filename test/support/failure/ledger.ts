import { readFileSync } from 'node:fs'
import { type Reason, reasons } from '@weir/core/limits/decision.ts'

/** What a client saw of one request: 32 bytes in the ledger's file, in the order in which the answers came. */
export interface LedgerEntry {
  /** 16 bytes as a latin1 string: a million of them fit into memory. Empty for an answer without an id. */
  readonly id: string
  readonly status: number
  readonly allowed: boolean
  readonly reason: Reason
  /** Which connection asked; its requests follow one another. */
  readonly connection: number
  /** Since the load began. */
  readonly atMs: number
  readonly latencyUs: number
}

const entryBytes = 32
const noId = '\0'.repeat(16)

/** The 16 bytes of a UUID. */
export const packId = (uuid: string): string => Buffer.from(uuid.replaceAll('-', ''), 'hex').toString('latin1')

export function unpackId(id: string): string {
  const hex = Buffer.from(id, 'latin1').toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

export function encodeEntry({ id, status, allowed, reason, connection, atMs, latencyUs }: LedgerEntry): Buffer {
  const bytes = Buffer.alloc(entryBytes)
  bytes.write(id, 0, 'latin1')
  bytes.writeUInt16LE(status, 16)
  bytes.writeUInt8(allowed ? 1 : 0, 18)
  bytes.writeUInt8(reasons.indexOf(reason), 19)
  bytes.writeUInt32LE(connection, 20)
  bytes.writeUInt32LE(Math.round(atMs), 24)
  bytes.writeUInt32LE(Math.min(0xffff_ffff, Math.round(latencyUs)), 28)
  return bytes
}

/** All that the load wrote so far. */
export function readLedger(file: string): LedgerEntry[] {
  const bytes = readFileSync(file)
  return Array.from({ length: Math.floor(bytes.length / entryBytes) }, (_, index) => {
    const at = index * entryBytes
    const id = bytes.toString('latin1', at, at + 16)
    return {
      id: id === noId ? '' : id,
      status: bytes.readUInt16LE(at + 16),
      allowed: bytes.readUInt8(at + 18) === 1,
      reason: reasons[bytes.readUInt8(at + 19)] ?? 'ok',
      connection: bytes.readUInt32LE(at + 20),
      atMs: bytes.readUInt32LE(at + 24),
      latencyUs: bytes.readUInt32LE(at + 28),
    }
  })
}

/**
 * By decision, how many answers carry its id: of refusals that were summed into one record there are several. Without
 * those that have none.
 */
export function answersById(entries: readonly LedgerEntry[]): ReadonlyMap<string, number> {
  const answers = new Map<string, number>()
  for (const { id } of entries) if (id !== '') answers.set(id, (answers.get(id) ?? 0) + 1)
  return answers
}
