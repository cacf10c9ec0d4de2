import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import type { NativeServer } from '@weir/runtime/native-server.ts'

/** One PING over a fresh connection. Redis answers an inline command without any handshake. */
function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 1_000 })
    const finish = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => socket.write('PING\r\n'))
    socket.once('data', (data) => finish(data.toString().startsWith('+PONG')))
    socket.once('timeout', () => finish(false))
    socket.once('error', () => finish(false))
  })
}

/** Debian's redis-server with the durability that quotas need: appended every second, and never evicting a counter. */
export const redisServer: NativeServer = {
  name: 'redis',
  needs: [{ program: 'redis-server', install: 'apt-get install -y redis-server' }],
  docker: {
    command: 'docker run -d -p 127.0.0.1:6379:6379 redis:8.8.3-alpine --appendonly yes --maxmemory-policy noeviction',
    env: 'WEIR_REDIS_URL=redis://127.0.0.1:6379',
  },
  portCount: 1,
  async plan({ dir, ports: [port = 0] }) {
    await mkdir(dir, { recursive: true })
    const settings = {
      port: String(port),
      bind: '127.0.0.1',
      dir,
      appendonly: 'yes',
      appendfsync: 'everysec',
      save: '',
      'maxmemory-policy': 'noeviction',
    }
    return {
      command: ['redis-server', ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])],
      env: {},
      cwd: dir,
      address: `redis://127.0.0.1:${port}`,
      ready: () => answersPing(port),
    }
  },
}
