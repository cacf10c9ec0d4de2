import { createServer, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { listenForTest } from '../../support/listen.ts'

/** A door to ClickHouse that does something about the first insert of decisions, once. */
export interface HeldInsert {
  /** For `WEIR_CLICKHOUSE_URL`. */
  readonly url: string
  /** Resolves when the insert is here. */
  readonly held: Promise<void>
  /** Lets it go on. */
  release(): void
}

/** Holds the first insert of decisions `before` ClickHouse has it, or its answer, `after` ClickHouse has taken it. */
export async function holdFirstInsert(address: string, when: 'before' | 'after'): Promise<HeldInsert> {
  const [behind, door] = [new URL(address), new URL(address)]
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isFirst = true
  const hold = async () => {
    held.resolve()
    await released.promise
  }
  const front = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming)
    const path = incoming.url ?? '/'
    const isHeld = isFirst && /INSERT INTO (?:weir\.)?decisions\b/i.test(decodeURIComponent(path).replaceAll('+', ' '))
    if (isHeld) isFirst = false
    if (isHeld && when === 'before') await hold()
    const { method, headers } = incoming
    const passed = request({ host: behind.hostname, port: behind.port, path, method, headers }, async (answer) => {
      const text = await buffer(answer)
      if (isHeld && when === 'after') await hold()
      const { 'transfer-encoding': _, ...kept } = answer.headers
      outgoing.writeHead(answer.statusCode ?? 502, kept).end(text)
    })
    passed.on('error', () => outgoing.destroy()).end(body)
  })
  door.port = String(await listenForTest(front))
  onTestFinished(() => released.resolve())
  return { url: door.href.replace(/\/$/, ''), held: held.promise, release: released.resolve }
}
