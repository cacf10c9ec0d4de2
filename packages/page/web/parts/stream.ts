import { useEffect, useRef, useState } from 'preact/hooks'
import { lapse } from '../session.ts'

/** The connection to a stream, as its page says it. */
export interface Connection {
  readonly state: 'connecting' | 'open' | 'lost' | 'resting'
  /** When it is tried again, while it is lost. */
  readonly retryAtMs: number
}

const [pauseFirstMs, pauseMostMs] = [1_000, 30_000]
/** Nobody looks: a stream is one of a hundred of its console. */
const hiddenMs = 60_000

/** Half to all of a pause that doubles, so that all the readers of a console do not come back together. */
const pauseMs = (failures: number) => Math.min(pauseMostMs, pauseFirstMs * 2 ** failures) * (0.5 + Math.random() / 2)

export type OnEvent = (event: string, data: string) => void

/** Reads server-sent events until the stream ends; gives back the last event's id. */
async function read(path: string, lastId: string, signal: AbortSignal, onEvent: OnEvent, onId: (id: string) => void) {
  const headers: Record<string, string> = lastId === '' ? {} : { 'Last-Event-ID': lastId }
  const response = await fetch(path, { signal, headers })
  if (response.status === 401) lapse()
  if (!response.ok || response.body === null) throw new Error(`${response.status}`)
  onEvent('open', '')
  const lines = response.body.pipeThrough(new TextDecoderStream())
  let [rest, event, data] = ['', 'message', '']
  for await (const text of lines) {
    const all = (rest + text).split('\n')
    rest = all.pop() ?? ''
    for (const line of all) {
      if (line === '') {
        if (data !== '') onEvent(event, data)
        event = 'message'
        data = ''
      } else if (line.startsWith('data:')) data += line.slice(line[5] === ' ' ? 6 : 5)
      else if (line.startsWith('event:')) event = line.slice(6).trim()
      else if (line.startsWith('id:')) onId(line.slice(3).trim())
    }
  }
}

/**
 * Follows a stream while the page is seen: it is opened again with growing pauses, from where it broke off, and rests
 * a minute after the page was hidden.
 */
export function useStream(path: string, onEvent: OnEvent): Connection {
  const [connection, setConnection] = useState<Connection>({ state: 'connecting', retryAtMs: 0 })
  const handler = useRef(onEvent)
  handler.current = onEvent
  useEffect(() => {
    const over = new AbortController()
    let [lastId, failures] = ['', 0]
    let current: AbortController | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let hiddenTimer: ReturnType<typeof setTimeout> | undefined
    const open = () => {
      clearTimeout(timer)
      const own = new AbortController()
      current = own
      const seen: OnEvent = (event, data) => {
        if (event === 'open') {
          failures = 0
          setConnection({ state: 'open', retryAtMs: 0 })
        } else handler.current(event, data)
      }
      read(path, lastId, own.signal, seen, (id) => {
        lastId = id
      })
        .catch(() => undefined)
        .finally(() => {
          if (over.signal.aborted || current !== own || own.signal.aborted) return
          const pause = pauseMs(failures)
          failures += 1
          handler.current('lost', '')
          setConnection({ state: 'lost', retryAtMs: Date.now() + pause })
          timer = setTimeout(open, pause)
        })
    }
    const onVisible = () => {
      clearTimeout(hiddenTimer)
      if (document.visibilityState === 'hidden') {
        hiddenTimer = setTimeout(() => {
          clearTimeout(timer)
          current?.abort()
          handler.current('lost', '')
          setConnection({ state: 'resting', retryAtMs: 0 })
        }, hiddenMs)
      } else if (current?.signal.aborted === true) open()
    }
    document.addEventListener('visibilitychange', onVisible)
    open()
    return () => {
      over.abort()
      current?.abort()
      clearTimeout(timer)
      clearTimeout(hiddenTimer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [path])
  return connection
}
