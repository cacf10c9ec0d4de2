import { mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { inLines } from '@weir/local-programs/fetch-progress.ts'
import { findProgram } from '@weir/local-programs/find-program.ts'
import type { NativeServer } from '@weir/local-programs/native-server.ts'
import { redisProgram } from '@weir/local-programs/server-programs.ts'
import { serverPassword } from '@weir/runtime/server-password.ts'

/** Sends AUTH and PING on a fresh connection: without the password Redis would not say that it still loads its data. */
function answersPing(port: number, password: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 1_000 })
    const finish = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    let said = ''
    socket.once('connect', () => socket.write(`AUTH ${password}\r\nPING\r\n`))
    socket.on('data', (data) => {
      said += data.toString()
      if (said.includes('PONG')) finish(true)
      else if (said.includes('-')) finish(false)
    })
    socket.once('timeout', () => finish(false))
    socket.once('error', () => finish(false))
  })
}

/** Redis with the durability that quotas need: appended every second, and never evicting a counter. */
export const redisServer: NativeServer = {
  name: 'redis',
  needs: [redisProgram],
  docker: {
    command: 'docker run -d -p 127.0.0.1:6379:6379 redis:8.8.3-alpine --appendonly yes --maxmemory-policy noeviction',
    env: 'WEIR_REDIS_URL=redis://127.0.0.1:6379',
  },
  portCount: 1,
  async plan({ dir, ports: [port = 0], environment, progress }) {
    const program = await findProgram(redisProgram, { environment, tell: inLines(progress) })
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const { text: password } = serverPassword(dir)
    // In a file, because every user can read the command line.
    const secrets = join(dir, 'password.conf')
    await writeFile(secrets, `requirepass ${password}\n`, { mode: 0o600 })
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
      command: [program, secrets, ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])],
      env: {},
      cwd: dir,
      address: `redis://default:${password}@127.0.0.1:${port}`,
      ready: () => answersPing(port, password),
    }
  },
}
