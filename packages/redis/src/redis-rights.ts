import type { Redis } from 'ioredis'
import type { RedisAddress } from './redis-url.ts'

/**
 * The least that the user of each kind of connection must be allowed, as `ACL SETUSER` takes it. docs/configuration.md
 * has the same lines, and test/nightly/rights/redis.test.ts shows that each right is needed.
 */
export const redisRights = {
  ingress: `~weir:* -@all +evalsha +eval +ping +info +time +mget +get +getrange +set +setrange +pexpireat +pexpire +zadd +zremrangebyscore +zcard +zrem`,
  console: `~weir:* -@all +evalsha +eval +info +time +mget +get +getrange +set +pexpire +scan +unlink`,
  claims: `~quota_alert:* ~weir:1:* -@all +eval +info +time +mget +set +get +getrange +hgetall +hset +pexpire +multi +exec`,
  queue:
    `~bull:weir-deliveries:* ~weir:endpoints:* -@all +evalsha +eval +info +bzpopmin +del +exists +get +hdel +hget +hgetall ` +
    `+hincrby +hmget +hmset +hset +incr +llen +lpush +lrange +lrem +rpoplpush +rpush +sadd +scard +set +smembers +srem +xadd +xtrim ` +
    `+zadd +zcard +zpopmin +zrange +zrangebyscore +zrem +zremrangebyscore +zrevrangebyscore`,
} as const

/** One of the uses in `redisRights`. */
export type RedisUse = keyof typeof redisRights

/** On a Cluster, in addition to these. */
export const clusterRights = '+cluster|slots +asking'

/** On a Cluster the queue's keys are in one slot, by other names; its client also says what it does with replicas. */
const clusterQueueRights = `${redisRights.queue.replace('~bull:weir-deliveries:*', '~{weir-deliveries}:*')} ${clusterRights} +readonly +readwrite`

/** Of the user that Sentinels are asked as. */
export const sentinelRights =
  'resetchannels &+switch-master -@all +sentinel|get-master-addr-by-name +sentinel|sentinels +subscribe'

/** Returns what the user of such a connection must be allowed. */
export function rightsOf(use: RedisUse, kind: RedisAddress['kind']): string {
  if (kind !== 'cluster') return redisRights[use]
  return use === 'queue' ? clusterQueueRights : `${redisRights[use]} ${clusterRights}`
}

/** These take no key, so any will do for them. */
const keyless = /^(?:ping|info|time|scan|multi|exec|eval|evalsha|cluster\|slots|asking|readonly|readwrite)$/

/**
 * Redis, from 7 on, says for each command with its arguments whether its user may run it. Redis 8 wants as many as the
 * command takes, so the last ones are left out until it answers; what none will do for is not judged.
 */
const checkScript = `
local may = {}
for at, words in ipairs(cjson.decode(ARGV[1])) do
  may[at] = 1
  for count = redis.acl_check_cmd and #words or 0, 1, -1 do
    local isAnswered, isAllowed = pcall(redis.acl_check_cmd, unpack(words, 1, count))
    if isAnswered then
      may[at] = isAllowed and 1 or 0
      break
    end
  end
end
return may`

/** As many arguments as any of the commands needs: Redis 7.0 reads beyond those that are missing. */
const wordsOf = (command: string, key: string) =>
  /^eval/.test(command) ? [command, '', '0'] : [...command.split('|'), key, key, key, key]

/** Returns the rights that the connection's user lacks, as far as Redis says; rejects if it may not be asked. */
export async function lackedRights(redis: Redis, rights: string): Promise<readonly string[]> {
  const of = (sign: string) => rights.split(' ').flatMap((right) => (right.startsWith(sign) ? [right.slice(1)] : []))
  const keys = of('~')
  const asked = of('+').flatMap((command) => keys.map((key) => ({ command, key, words: wordsOf(command, key) })))
  const may = await redis.eval(checkScript, 0, JSON.stringify(asked.map(({ words }) => words)))
  if (!Array.isArray(may)) return []
  const allowed = asked.filter((_, at) => may[at] === 1)
  const withKey = allowed.filter(({ command }) => !keyless.test(command))
  const lackedKeys = keys.filter((key) => !withKey.some((one) => one.key === key))
  const lacked = of('+').filter((command) => !allowed.some((one) => one.command === command))
  // Without any of its keys, every command that takes one looks as if it were denied.
  const judged = withKey.length > 0 ? lacked : lacked.filter((command) => keyless.test(command))
  return [...judged.map((command) => `+${command}`), ...lackedKeys.map((key) => `~${key}`)]
}

const isRefusal = /^(?:NOPERM|-?ERR ACL failure)|executing the script can't run/

/** Whether it answers what only Sentinels are asked. */
export const isOfSentinel = (error: Error & { readonly command?: { readonly name: string } }): boolean =>
  /^(?:sentinel|subscribe)$/.test(error.command?.name ?? '')

/** Whether Redis refused a command because of its user's rights, in a script too. */
export const isRightsError = (error: Error): boolean => isRefusal.test(error.message)

/** The right that an error names by itself. */
export function rightOf({ message }: Error): string {
  const command = /'([a-z|-]+)' command/.exec(message)?.[1]
  if (command !== undefined) return `+${command}`
  if (/\bchannels?\b/.test(message)) return '&+switch-master'
  return /\bkeys?\b/.test(message) ? 'a key pattern that it needs' : 'a command that its script uses'
}
