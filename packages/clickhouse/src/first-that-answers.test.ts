import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { ClickHouseError } from '@clickhouse/client'
import { expect, onTestFinished, test } from 'vitest'
import { addressesOf } from './addresses.ts'
import { connectClickhouse, readRows } from './connect.ts'
import { isServerAway } from './first-that-answers.ts'
import { insertBlock, linesOf } from './insert.ts'
import { clickhouseAt } from './variables.ts'

/** A server that answers every statement with its name; what it was asked, and with which settings. */
async function startNamed(name: string) {
  const asked: string[] = []
  const settings: string[] = []
  const server = createServer((request, response) => {
    void text(request).then((statement) => {
      asked.push(statement)
      settings.push(...new URL(request.url ?? '', 'http://h').searchParams.keys())
      response.end(`{"name":"${name}"}\n`)
    })
  })
  const port = { of: 0 }
  const start = async () => {
    server.listen(port.of, '127.0.0.1')
    await once(server, 'listening')
    port.of = (server.address() as AddressInfo).port
  }
  const stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  await start()
  onTestFinished(() => (server.listening ? stop() : undefined))
  return { asked, settings, start, stop, host: () => `127.0.0.1:${port.of}` }
}

test('Addresses are read shard by shard, each with the user and the settings of all', () => {
  expect(addressesOf('https://u:p@a1:8443,a2:8443;b1:8443?clickhouse_setting_x=1')).toEqual([
    ['https://u:p@a1:8443?clickhouse_setting_x=1', 'https://u:p@a2:8443?clickhouse_setting_x=1'],
    ['https://u:p@b1:8443?clickhouse_setting_x=1'],
  ])
  expect(addressesOf('http://h:8123')).toEqual([['http://h:8123']])
  expect(addressesOf('nonsense')).toEqual([['nonsense']])
  expect(addressesOf('http://u:a@b,c;d@h:8123')).toEqual([['http://u:a@b,c;d@h:8123']])
})

test('A question is asked of the next server when one does not answer; an insert is for its caller to repeat', async () => {
  const [one, other] = [await startNamed('one'), await startNamed('other')]
  const address = `http://${one.host()},${other.host()}`
  const client = connectClickhouse({ ...clickhouseAt(address), clickhouseCluster: 'c' }, 'test')
  onTestFinished(() => client.close())
  const nameOf = async () => (await readRows<{ name: string }>(client, 'SELECT 1'))[0]?.name
  expect(await nameOf()).toBe('one')
  await one.stop()
  expect(await nameOf()).toBe('other')
  await one.start()
  expect(await nameOf()).toBe('other')
  await other.stop()
  await expect(client.command({ query: 'INSERT' })).rejects.toMatchObject({ code: expect.stringMatching(/^ECONN/) })
  await client.command({ query: 'INSERT' })
  expect(one.asked.at(-1)).toContain('INSERT')
})

test('A server by itself is sent none of the settings of a cluster', async () => {
  const server = await startNamed('one')
  const sentWith = async (clickhouseCluster: string) => {
    server.settings.length = 0
    const client = connectClickhouse({ ...clickhouseAt(`http://${server.host()}`), clickhouseCluster }, 'test')
    await insertBlock(client, { table: 'decisions', lines: linesOf([{}]), dedupToken: 'block' })
    await client.close()
    return server.settings.filter((name) => /quorum|keeper|distributed/.test(name))
  }
  expect(await sentWith('')).toEqual([])
  const forCluster = ['insert_quorum', 'insert_keeper_max_retries', 'distributed_foreground_insert']
  expect(await sentWith('c')).toEqual(expect.arrayContaining(forCluster))
})

test('Another replica is for servers that do not answer or lost Keeper, not for statements that fail', () => {
  const refusal = (code: string) => new ClickHouseError({ message: 'no', code, type: 'T' })
  const failed = (code: string) => Object.assign(new Error('no'), { code })
  const away = [refusal('242'), failed('ECONNREFUSED'), failed('EAI_AGAIN'), new Error('Timeout error.')]
  const here = [refusal('319'), refusal('252'), failed('PARTITION_LOST'), new Error('ClickHouse still works on it')]
  expect([...away, ...here].map(isServerAway)).toEqual([true, true, true, true, false, false, false, false])
})
