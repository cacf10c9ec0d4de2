import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { NativeServer } from '@weir/local-programs/native-server.ts'
import { serverPassword } from '@weir/runtime/server-password.ts'

async function answersPing(address: string): Promise<boolean> {
  try {
    const answer = await fetch(`${address}/ping`, { signal: AbortSignal.timeout(1_000) })
    return (await answer.text()) === 'Ok.\n'
  } catch {
    return false
  }
}

/** ClickHouse's engine as a library (chdb from npm) behind ClickHouse's HTTP protocol. Needs no installed program. */
export const clickhouseServer: NativeServer = {
  name: 'clickhouse',
  needs: [],
  docker: {
    command: 'docker run -d -p 127.0.0.1:8123:8123 -e CLICKHOUSE_SKIP_USER_SETUP=1 clickhouse/clickhouse-server:26.3',
    env: 'WEIR_CLICKHOUSE_URL=http://127.0.0.1:8123',
  },
  portCount: 1,
  async plan({ dir, ports: [port = 0] }) {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const main = fileURLToPath(new URL('./main.ts', import.meta.url))
    const password = serverPassword(dir)
    return {
      command: [process.execPath, main, '--port', String(port), '--path', dir, '--password-file', password.file],
      env: {},
      cwd: dir,
      address: `http://default:${password.text}@127.0.0.1:${port}`,
      ready: () => answersPing(`http://127.0.0.1:${port}`),
    }
  },
}
