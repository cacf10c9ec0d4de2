import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { shutOutMsOf } from '@weir/core/limits/exceeding.ts'
import type { Redis } from 'ioredis'
import { blockKeyBeside, blockSuffix } from './keys.ts'
import type { QuotaServers } from './quota-counts.ts'
import {
  identitiesOfKey,
  identityOfRecord,
  isHidden,
  keyOfScope,
  limitOfKey,
  type RecordedScope,
} from './recorded-scope.ts'
import { scanKeys } from './scan-keys.ts'

/*
 * Promises:
 * - Only blocks that stand in Redis at the time of the question are answered, with the end that Redis has.
 * - A block whose record hides a value, or leaves it out, is found by a search of Redis' keys. The search ends after
 *   `searchMs`, and the answer says that there may be more.
 * - The id of a block is its key, encrypted: it shows no address, and every console can read it. The secret is in
 *   Redis, whose readers see every key in clear anyway.
 */

/** A block that stands. */
export interface StandingBlock<T extends RecordedScope> {
  /** What was recorded of it; of a record that hides the address, one of several blocks. */
  readonly scope: T
  readonly id: string
  readonly untilMs: number
}

/** A caller waits; more than a million keys are looked at within that time. */
const searchMs = 3_000
/** Found by one search at most, as records of one answer are at most. */
const foundMax = 10_000
/** Commands in flight: a few hundred kilobytes of replies. */
const readsMax = 500
/** As decide.lua has it: Redis' clock may go back by so much. */
const stepBackMs = 2_000

const secretKey = 'weir:1:{_blocks}:_ids'
/** Longer than the longest block, from the last answer on: an id that was answered can be read as long as its block. */
const secretMs = 32 * 86_400_000
const [secretBytes, ivBytes, tagBytes] = [32, 12, 16]
const algorithm = 'aes-256-gcm'
/** Begins each id, as `A`: one in 64 began with `-` without it, which a command line takes for a flag. */
const idVersion = Buffer.of(1)

/** Reads a block as lua/lib/block.lua stores it: until when it stands; 0 for anything else. */
function untilOf(value: Buffer | null): number {
  const isBlock =
    value !== null && ((value.length === 9 && value[0] === 0x62) || (value.length === 17 && value[0] === 0x42))
  return isBlock ? value.readDoubleBE(1) : 0
}

/** Returns the secret of ids, which the first console makes. */
async function readSecret(redis: Redis): Promise<Buffer> {
  await redis.set(secretKey, randomBytes(secretBytes), 'PX', secretMs, 'NX')
  const secret = await redis.getBuffer(secretKey)
  if (secret?.length !== secretBytes) throw new Error(`${secretKey} is no secret of ${secretBytes} bytes`)
  await redis.pexpire(secretKey, secretMs)
  return secret
}

/** The same key has the same id: the initialisation vector is made of it. */
function encrypt(secret: Buffer, key: string): string {
  const iv = createHmac('sha256', secret).update(key).digest().subarray(0, ivBytes)
  const cipher = createCipheriv(algorithm, secret, iv)
  const text = Buffer.concat([cipher.update(key), cipher.final()])
  return Buffer.concat([idVersion, iv, cipher.getAuthTag(), text]).toString('base64url')
}

function decrypt(secret: Buffer, id: string): string | undefined {
  const whole = Buffer.from(id, 'base64url')
  const bytes = whole.subarray(idVersion.length)
  if (!whole.subarray(0, idVersion.length).equals(idVersion) || bytes.length <= ivBytes + tagBytes) return undefined
  try {
    const decipher = createDecipheriv(algorithm, secret, bytes.subarray(0, ivBytes))
    decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes))
    return Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]).toString()
  } catch {
    return undefined
  }
}

/** Searches for the blocks of scopes whose keys are not known: the key of each one's count, with its scope. */
async function search<T extends RecordedScope>(servers: readonly Redis[], scopes: readonly T[]) {
  const byLimit = Map.groupBy(scopes, ({ limit }) => limit.name)
  const wanted = new Map(
    [...byLimit].map(([name, of]) => [name, new Map(of.map((one) => [identityOfRecord(one), one]))]),
  )
  const scopeOf = (key: string): T | undefined => {
    const name = limitOfKey(key)
    const [{ limit } = { limit: undefined }] = byLimit.get(name) ?? []
    const identities = limit === undefined ? [] : identitiesOfKey(key, limit)
    return identities.map((one) => wanted.get(name)?.get(one)).find((one) => one !== undefined)
  }
  const found = new Map<string, T>()
  const endMs = performance.now() + searchMs
  for (const server of servers) {
    for await (const keys of scanKeys(server, `weir:1:*${blockSuffix}`)) {
      if (found.size >= foundMax || performance.now() > endMs) return { found, isWhole: false }
      for (const blockKey of keys) {
        const key = blockKey.slice(0, -blockSuffix.length)
        const scope = scopeOf(key)
        if (scope !== undefined) found.set(key, scope)
      }
    }
  }
  return { found, isWhole: true }
}

/** Returns what finds blocks in Redis by the records of refusals. */
export function createStandingBlocks({ serverOf, all }: QuotaServers) {
  const standing = async <T extends RecordedScope>(found: readonly (readonly [string, T])[], secret: Buffer) => {
    const blocks: StandingBlock<T>[] = []
    for (let at = 0; at < found.length; at += readsMax) {
      const some = found.slice(at, at + readsMax)
      const [time, ...values] = await Promise.all([
        serverOf(secretKey).time(),
        ...some.map(([key]) => serverOf(key).getBuffer(blockKeyBeside(key))),
      ])
      const nowMs = Number(time[0]) * 1_000 + Math.floor(Number(time[1]) / 1_000)
      for (const [n, [key, scope]] of some.entries()) {
        const untilMs = untilOf(values[n] ?? null)
        const leftMs = untilMs - nowMs
        const isStanding = leftMs > 0 && leftMs <= shutOutMsOf(scope.limit) + stepBackMs
        if (isStanding) blocks.push({ scope, id: encrypt(secret, key), untilMs })
      }
    }
    return blocks
  }

  return {
    /** Finds the blocks of these scopes that stand, in their order. Rejects when Redis does not answer. */
    async find<T extends RecordedScope>(
      scopes: readonly T[],
    ): Promise<{ readonly blocks: readonly StandingBlock<T>[]; readonly isWhole: boolean }> {
      const secret = await readSecret(serverOf(secretKey))
      const hidden = scopes.filter(isHidden)
      const searched =
        hidden.length === 0 ? { found: new Map<string, T>(), isWhole: true } : await search(all(), hidden)
      const found = new Map(searched.found)
      // After those that were searched for: of two records of one block, the clear one says more.
      for (const scope of scopes) {
        const key = keyOfScope(scope)
        if (key !== undefined) found.set(key, scope)
      }
      const at = new Map(scopes.map((scope, position) => [scope, position]))
      const sorted = [...found].sort(([, a], [, b]) => (at.get(a) ?? 0) - (at.get(b) ?? 0))
      return { blocks: await standing(sorted, secret), isWhole: searched.isWhole }
    },
    /** The key of the count whose block has this id; undefined if it is no id of these servers. */
    async keyOf(id: string): Promise<string | undefined> {
      return decrypt(await readSecret(serverOf(secretKey)), id)
    },
  }
}
