import { chmod, rm, stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { kafkaFrom, localKafka } from '@weir/cli/find-servers.ts'
import { choosePorts } from '@weir/cli/up/ports.ts'
import { planServers } from '@weir/cli/up/servers.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer, securedKafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { openLoginRelay } from '@weir/local-kafka/login-relay.ts'
import { servesClients } from '@weir/local-kafka/rights.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { spawnBound } from '@weir/runtime/spawn-bound.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { folderForTest } from '../../support/opened.ts'
import { createTopic, kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readTopic } from '../../support/servers/read-topic.ts'
import { until } from '../../support/until.ts'

/** Starts the local Kafka on `dir` and on ports that are free now. */
async function startOn(dir: string, server = kafkaServer) {
  const ports = await freePorts(server.portCount)
  const plan = await server.plan({ dir, ports, progress: () => undefined, environment: process.env })
  const relay = await plan.openRelay?.()
  const child = spawnBound(plan.command, { stdio: 'ignore', env: { ...process.env, ...plan.env }, cwd: plan.cwd })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async (signal: NodeJS.Signals) => {
    relay?.close()
    child.kill(signal)
    await ended
  }
  onTestFinished(() => stop('SIGKILL'))
  await until(() => plan.ready())
  return { address: plan.address, login: plan.login, ports, stop }
}

const newDir = async () => {
  const dir = await folderForTest('kafka')
  return dir
}

/** Sends one record. Resolves to 'taken', or to what Kafka says against it. */
async function send(options: KafkaOptions, topic: string, value: string): Promise<string> {
  const sender = createRecordSender(options)
  return sender
    .send(topic, [{ key: 'k', value, headers: { h: 'v' } }])
    .then(() => 'taken', String)
    .finally(() => sender.close())
}

test.each(['SIGKILL', 'SIGTERM'] as const)('after %s it goes on with its data on other ports', async (signal) => {
  const dir = await newDir()
  const first = await startOn(dir)
  const before = kafkaOptions(first.address)
  const topic = await createTopic(before, 2)
  expect(await send(before, topic, 'kept')).toBe('taken')
  await first.stop(signal)
  const second = await startOn(dir)
  expect(second.address).not.toBe(first.address)
  const records = await readTopic(kafkaOptions(second.address), topic, (read) => read.length > 0)
  expect(records.map(({ value, headers }) => [value?.toString(), headers])).toEqual([['kept', { h: 'v' }]])
})

test('nothing is ready where no Kafka listens, and asking never throws', async () => {
  const dir = await newDir()
  const plan = await kafkaServer.plan({
    dir,
    ports: await freePorts(2),
    progress: () => undefined,
    environment: process.env,
  })
  expect(await plan.ready()).toBe(false)
})

test('data of a Kafka without rights gets them and stays, and each start takes the password of the file', async () => {
  const dir = await newDir()
  const before = await startOn(dir)
  const topic = await createTopic(kafkaOptions(before.address), 1)
  expect(await send(kafkaOptions(before.address), topic, '1')).toBe('taken')
  await before.stop('SIGKILL')
  await chmod(join(dir, 'server.properties'), 0o644)
  const values: string[] = ['1']
  const passwords: string[] = []
  for (const value of ['2', '3']) {
    const { address, login, ports, stop } = await startOn(dir, securedKafkaServer)
    const as = (password = '') => kafkaFrom(localKafka({ address, username: login?.username ?? '', password }), 'test')
    expect(await send(kafkaOptions(address), topic, 'x')).toMatch(/lacks Write on Topic/)
    for (const old of [...passwords, 'wrong']) expect(await send(as(old), topic, 'x')).toMatch(/authentication failed/i)
    expect(await send(as(login?.password), topic, value)).toBe('taken')
    values.push(value)
    const records = await readTopic(kafkaOptions(address), topic, (read) => read.length >= values.length)
    expect(records.map((record) => String(record.value))).toEqual(values)
    // Of the controller, the open and the secured listener only the open one serves callers without a password.
    expect(await Promise.all(ports.slice(1).map(servesClients))).toEqual([false, true, false])
    expect((await stat(join(dir, 'server.properties'))).mode & 0o077).toBe(0)
    await stop('SIGTERM')
    passwords.push(login?.password ?? '')
    await rm(join(dir, 'password')) // the next start makes another
  }
})

/** Sends bytes to a port, or nothing, and waits until the other side ends the connection. */
const sendBytes = (port: number, bytes: string) =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(bytes))
    socket.on('error', () => undefined).once('close', () => resolve('closed'))
  })

test('the address for all ends connections that are no client of Kafka, and serves the next one', async () => {
  const { login, ports } = await startOn(await newDir(), securedKafkaServer)
  const [port = 0] = await freePorts(1)
  const relay = await openLoginRelay(port, { open: ports[2] ?? 0, secured: ports[3] ?? 0 }, 500)
  onTestFinished(() => void relay.close())
  const endlessVersions = `${'\x7f'.repeat(4)}\0\x12`
  const brokenLogin = '\0\0\0\x02\0\x11'
  for (const bytes of ['', '\0\0', 'GET / HTTP/1.1\r\n\r\n', endlessVersions, brokenLogin])
    expect([bytes, await sendBytes(port, bytes)]).toEqual([bytes, 'closed'])
  const as = kafkaFrom(localKafka({ username: '', password: '', ...login, address: `127.0.0.1:${port}` }), 'test')
  const topic = await createTopic(as, 1)
  expect(await send(as, topic, '1')).toBe('taken')
  expect(await readTopic(kafkaOptions(`127.0.0.1:${port}`), topic, (read) => read.length > 0)).toHaveLength(1)
})

test('a client that asks before it has an answer gets both answers at the address for all', async () => {
  const { address } = await startOn(await newDir(), securedKafkaServer)
  const versions = '\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff'
  const metadata = '\0\0\0\x0e\0\x03\0\0\0\0\0\x02\xff\xff\0\0\0\0'
  const login = '\0\0\0\x11\0\x11\0\x01\0\0\0\x02\xff\xff\0\x05PLAIN'
  for (const second of [metadata, login]) {
    const socket = connect({ port: Number(address.split(':')[1]), host: '127.0.0.1' })
    let received = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
    })
    socket.write(Buffer.from(versions + second, 'latin1'))
    const answered = () => {
      const ids: number[] = []
      for (let at = 0; received.length >= at + 8; at += 4 + received.readInt32BE(at))
        ids.push(received.readInt32BE(at + 4))
      return ids.length === 2 ? ids : undefined
    }
    expect(await waitUntil(async () => answered(), { deadlineMs: 5_000 })).toEqual([1, 2])
    socket.destroy()
  }
})

test('what callers without a password begin takes neither the memory of Kafka nor the way of others', async () => {
  const { address, login, ports } = await startOn(await newDir(), securedKafkaServer)
  const as = kafkaFrom(localKafka({ username: '', password: '', ...login, address }), 'test')
  await ensureTopics(as, await readTopics())
  const topic = 'weir.policy.v1'
  const begin = (port: number | undefined, length: number) => {
    const socket = connect({ port: port ?? 0, host: '127.0.0.1' }, () => {
      const head = Buffer.alloc(6)
      head.writeInt32BE(length)
      head.writeInt16BE(3, 4)
      socket.write(head)
    })
    socket.on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    return new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()))
  }
  const [, controller, open, secured] = ports
  const largest = [100_000_000, 17_825_792].flatMap((length) => Array.from({ length: 40 }, () => begin(open, length)))
  await Promise.all(largest)
  for (const port of [secured, controller]) await Promise.all(Array.from({ length: 800 }, () => begin(port, 500_000)))
  // The last one is as large as a policy may be.
  for (const value of ['1', '2', 'x'.repeat(16_700_000)]) expect(await send(as, topic, value)).toBe('taken')
})

test('a program of another user that took the ports of servers gets no password', async () => {
  const ports = await choosePorts('auto', new Set())
  const { processes } = await planServers({
    environment: { PATH: process.env.PATH },
    dir: await newDir(),
    ports,
    progress: () => undefined,
  })
  let received = ''
  // To every question: what Redis answers to a ping, or for Kafka no throttling and one broker.
  const toKafka = Buffer.from([0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1])
  const { redis, kafka, kafkaController, kafkaOpen, kafkaSecured, clickhouse } = ports
  for (const port of [redis, kafka, kafkaController, kafkaOpen, kafkaSecured, clickhouse]) {
    const server = createServer((socket) => {
      socket.on('data', (chunk) => {
        received += chunk.toString('latin1')
        socket.write(
          port === redis ? '+OK\r\n+PONG\r\n' : port === clickhouse ? 'HTTP/1.1 200 OK\r\n\r\nOk.\n' : toKafka,
        )
      })
    })
    onTestFinished(() => void server.close())
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  }
  const us = process.getuid?.() ?? 0
  vi.spyOn(process, 'getuid').mockReturnValue(us + 1) // so that this test is another user
  onTestFinished(() => void vi.restoreAllMocks())
  expect(processes).toHaveLength(3)
  for (const { name, ready } of processes) expect([name, await ready()]).toEqual([name, false])
  expect(received).toBe('')
})
