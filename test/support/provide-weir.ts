import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type RunningWeir, weirUp } from './weir-up.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** `http://host:port`, which answers where the tier's Weir is. */
    weirUrl: string
  }
}

/** Global set-up: one whole Weir for all files of a tier that take `whole-weir.ts`. The first of them starts it. */
export default async (project: TestProject) => {
  let weir: Promise<RunningWeir> | undefined
  const server = createServer(async (_, response) => {
    try {
      weir ??= weirUp()
      const { line, dir } = await weir
      response.end(JSON.stringify({ line, dir }))
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  project.provide('weirUrl', `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return async () => {
    server.close()
    await (await weir?.catch(() => undefined))?.close()
  }
}
