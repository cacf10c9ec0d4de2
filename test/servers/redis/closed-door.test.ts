import { execFileSync } from 'node:child_process'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { startServer } from '../../support/servers/start-server.ts'

const server = await forFile(startServer(redisServer))

const ask = async (url: string) => {
  const redis = new Redis(url, {
    maxRetriesPerRequest: 0,
    retryStrategy: null,
    enableReadyCheck: false,
    lazyConnect: true,
  })
  redis.on('error', () => undefined)
  try {
    return await redis.connect().then(() => redis.ping())
  } catch (error) {
    return String(error)
  } finally {
    redis.disconnect()
  }
}

it('answers only who has the password, before and after a restart', async () => {
  const { host } = new URL(server.address)
  expect(await ask(server.address)).toBe('PONG')
  expect(await ask(`redis://${host}`)).not.toBe('PONG')
  await server.kill('SIGTERM')
  await server.restart()
  expect(await ask(server.address)).toBe('PONG')
  expect(await ask(`redis://default:guess@${host}`)).not.toBe('PONG')
})

it('keeps the password out of its command line', () => {
  const command = execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(server.pid())], { encoding: 'utf8' })
  expect(command).toMatch(/redis|valkey/)
  expect(command).not.toContain(new URL(server.address).password)
})
