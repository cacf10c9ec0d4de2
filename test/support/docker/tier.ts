import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { projectRoot } from '@weir/cli/project.ts'
import { inject, type TestContext } from 'vitest'
import { runDocker } from './engine.ts'
import { openPageShell, type PageShell } from './page-shell.ts'

/** Runs a command of Docker on the tier's engine, and resolves to its output. */
export const docker = (...args: string[]): Promise<string> => runDocker(inject('dockerEnvironment'), args)

/** A terminal in the repository's root. */
export const openShell = (): PageShell => openPageShell(projectRoot, { ...process.env, ...inject('dockerEnvironment') })

/** After a test that failed: prints what runs, and the end of what each container said. */
export async function showLogs(task: TestContext['task'], shell: PageShell): Promise<void> {
  if (task.result?.state !== 'fail') return
  process.stdout.write(await shell.run('docker compose ps --all; docker compose logs --tail 20', 60_000))
}

/** A server that containers reach at `host.docker.internal`, and that answers `hello`. */
export async function openHelloServer(
  port: number,
  onBody: (request: IncomingMessage, body: string) => void = () => {},
): Promise<{ close(): void }> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      onBody(request, body)
      response.end('hello')
    })
  })
  server.listen(port, '0.0.0.0')
  await once(server, 'listening')
  return {
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
