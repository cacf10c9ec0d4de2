import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core/errors.ts'
import { type ConsoleAddress, openConsoleStream } from '../console/console-client.ts'
import type { StreamEvent } from '../console/event-stream.ts'

/** Between two attempts to listen again. */
const [pauseMsMin, pauseMsMax] = [1_000, 30_000]

/** What a reader of the stream asks for, and is told beside its events. */
export interface StreamReader {
  readonly console: ConsoleAddress
  readonly query: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly signal: AbortSignal
  /** Called once for each break, before its pause. `isGap`: there was no id to go on from. */
  readonly onBreak: (pauseMs: number, isGap: boolean) => void
}

/**
 * Yields the events of `GET /v1/decisions/stream` until the signal, over breaks: it listens again after growing pauses,
 * on from the last decision. Throws as `askConsole` does where the stream never opened, or is refused.
 */
export async function* followStream({ console, query, signal, onBreak }: StreamReader): AsyncGenerator<StreamEvent> {
  let lastId: string | undefined
  let failures = 0
  let wasOpen = false
  while (!signal.aborted) {
    try {
      const request = { path: '/v1/decisions/stream', query }
      for await (const event of openConsoleStream(console, request, { lastId, signal })) {
        failures = 0
        wasOpen = true
        lastId = event.id ?? lastId
        yield event
      }
    } catch (error) {
      if (signal.aborted) return
      const isPassing = error instanceof WeirError && error.code === 'CONSOLE_UNAVAILABLE'
      if (!isPassing || !wasOpen) throw error
    }
    if (signal.aborted) return
    failures += 1
    const pauseMs = Math.min(pauseMsMin * 2 ** (failures - 1), pauseMsMax)
    onBreak(pauseMs, failures === 1 && lastId === undefined)
    await delay(pauseMs, undefined, { signal }).catch(() => undefined)
  }
}
