/**
 * Reads addresses of ClickHouse, shard by shard: `http://user:password@a1:8123,a2:8123;b1:8123,b2:8123` has two shards
 * of two replicas each. A text that is none of them is one address, for the reader of addresses to refuse.
 */
export function addressesOf(text: string): string[][] {
  const [, start = '', hosts = '', rest = ''] = /^(https?:\/\/(?:[^/?#]*@)?)([^/?]+)(.*)$/s.exec(text) ?? []
  if (hosts === '') return [[text]]
  return hosts.split(';').map((shard) => shard.split(',').map((host) => `${start}${host}${rest}`))
}
