import { brotliCompressSync, deflateSync, gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { randomTable, startClickhouse } from '../../support/servers/clickhouse.ts'

const clickhouse = await startClickhouse()
afterAll(() => clickhouse.close())

const text = 'one\ntwo\n'
/** The frame of `text` as lz4.frame of Python writes it. */
const lz4 = Buffer.from('04224d186840080000000000000070080000806f6e650a74776f0a00000000', 'hex')

describe('requests', () => {
  const bodies: readonly (readonly [string, Buffer<ArrayBuffer>])[] = [
    ['gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['zstd', zstdCompressSync(text)],
    ['br', brotliCompressSync(text)],
    ['lz4', lz4],
  ]
  it.each(bodies)('are read in %s', async (encoding, body) => {
    const table = randomTable()
    await clickhouse.ask(`CREATE TABLE ${table} (s String) ENGINE = MergeTree ORDER BY s`)
    const headers = { 'content-encoding': encoding }
    const answer = await clickhouse.post({ query: `INSERT INTO ${table} FORMAT TSV` }, body, headers)
    expect(await answer.text()).toBe('')
    expect(await clickhouse.ask(`SELECT s FROM ${table} ORDER BY s`)).toBe('one\ntwo')
  })

  it('are refused clearly when they are not what they say', async () => {
    const answer = await clickhouse.post({}, 'SELECT 1', { 'content-encoding': 'gzip' })
    expect([answer.status, answer.headers.get('x-clickhouse-exception-code')]).toEqual([500, '271'])
  })
})

describe('answers', () => {
  const ask = async (parameters: Record<string, string>, accept: string) => {
    const url = `${clickhouse.url}/?${new URLSearchParams({ query: 'SELECT number FROM numbers(100000)', ...parameters })}`
    const { get } = await import('node:http')
    return await new Promise<{ encoding: string | undefined; body: Buffer }>((resolve, reject) => {
      get(url, { headers: { ...clickhouse.credentials, 'accept-encoding': accept } }, async (response) => {
        const body = Buffer.concat(await response.toArray())
        resolve({ encoding: response.headers['content-encoding'], body })
      }).on('error', reject)
    })
  }

  it('are compressed only when enable_http_compression asks for it', async () => {
    expect((await ask({}, 'gzip')).encoding).toBeUndefined()
    const { encoding, body } = await ask({ enable_http_compression: '1' }, 'gzip, deflate')
    expect(encoding).toBe('gzip')
    expect(gunzipSync(body).toString()).toMatch(/^0\n1\n.*\n99999\n$/s)
  })

  it('come in the best encoding of those accepted, and plain when none is known', async () => {
    const zstd = await ask({ enable_http_compression: '1' }, 'lz4,zstd,br,gzip')
    expect(zstd.encoding).toBe('zstd')
    expect(zstdDecompressSync(zstd.body)).toHaveLength(588_890)
    expect((await ask({ enable_http_compression: '1' }, 'lz4')).encoding).toBeUndefined()
  })
})
