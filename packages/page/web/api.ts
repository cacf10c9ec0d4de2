import { useEffect, useRef, useState } from 'preact/hooks'
import { lapse, type Session, sessionNow, setSession, useSession } from './session.ts'

/** Why there is no answer, as the API says it (RFC 9457). */
export class Refusal extends Error {
  readonly status: number
  readonly type: string
  readonly body: Readonly<Record<string, unknown>>
  /** When the API says to ask again; 0: it does not say. */
  readonly retryAfterS: number
  constructor(status: number, body: Readonly<Record<string, unknown>>, retryAfterS = 0) {
    super(typeof body.detail === 'string' ? body.detail : `The console answered ${status}.`)
    this.status = status
    this.retryAfterS = retryAfterS
    this.type = String(body.type ?? '').replace('urn:weir:problem:', '')
    this.body = body
  }
}

export type Params = Readonly<Record<string, string | readonly string[] | undefined>>

/** A path of the API with its parameters. */
export function pathOf(path: string, params: Params = {}): string {
  const all = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    for (const one of [value ?? []].flat()) if (one !== '') all.append(name, one)
  }
  return all.size === 0 ? path : `${path}?${all}`
}

async function answerOf(response: Response): Promise<unknown> {
  const text = await response.text()
  const body = text === '' ? {} : JSON.parse(text)
  if (response.ok) return body
  if (response.status === 401) lapse()
  throw new Refusal(response.status, body, Number(response.headers.get('retry-after') ?? 0))
}

/** Questions that a person waits for. */
const waitMs = 30_000

const unreachable = (error: unknown) =>
  error instanceof Refusal
    ? error
    : new Refusal(0, {
        detail: error instanceof SyntaxError ? 'The answer is no JSON.' : 'The console does not answer.',
      })

/** Asks the API. Rejects with a `Refusal`. */
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  const signals = [AbortSignal.timeout(waitMs), ...(signal === undefined ? [] : [signal])]
  try {
    return (await answerOf(await fetch(path, { signal: AbortSignal.any(signals) }))) as T
  } catch (error) {
    throw unreachable(error)
  }
}

/** Asks for a text of this type, with what says whether it has changed since. Rejects with a `Refusal`. */
export async function askText(path: string, type: string): Promise<{ readonly text: string; readonly etag: string }> {
  try {
    const response = await fetch(path, { headers: { accept: type }, signal: AbortSignal.timeout(waitMs) })
    if (!response.ok) await answerOf(response)
    return { text: await response.text(), etag: response.headers.get('etag') ?? '' }
  } catch (error) {
    throw unreachable(error)
  }
}

/** Changes something. Rejects with a `Refusal`. */
export async function send<T>(
  method: string,
  path: string,
  body?: object | string,
  more: Readonly<Record<string, string>> = {},
): Promise<T> {
  const session = sessionNow()
  const isText = typeof body === 'string'
  const headers: Record<string, string> = {
    ...more,
    ...(typeof session === 'object' ? { 'X-Weir-CSRF': session.csrf } : {}),
  }
  if (body !== undefined) headers['Content-Type'] = isText ? 'application/yaml' : 'application/json'
  const sent = body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }
  try {
    return (await answerOf(await fetch(path, { method, headers, signal: AbortSignal.timeout(waitMs), ...sent }))) as T
  } catch (error) {
    throw unreachable(error)
  }
}

export const signIn = async (token: string): Promise<void> =>
  setSession(await send<Session>('POST', '/session', { token }))

/** A question on its way, answered or refused; an answer stays when the next one fails. */
export interface Asked<T> {
  readonly data: T | undefined
  readonly error: Refusal | undefined
  /** When the data came, by the clock of the browser. */
  readonly atMs: number | undefined
  readonly again: () => void
}

/** Asks whenever the path changes, and every `everyMs` while the page is seen. No path asks nothing. */
export function useAnswer<T>(path: string | undefined, everyMs?: number): Asked<T> {
  const [state, setState] = useState<Omit<Asked<T>, 'again'> & { readonly of: string | undefined }>()
  const [round, setRound] = useState(0)
  // After a new sign-in the page goes on where it was.
  const session = useSession()
  // The next round waits for the answer of this one: a slow refusal is told as well.
  const isAsking = useRef(false)
  useEffect(() => {
    if (path === undefined) return
    const over = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    isAsking.current = true
    ask<T>(path, over.signal).then(
      (data) => {
        if (over.signal.aborted) return
        isAsking.current = false
        setState({ of: path, data, error: undefined, atMs: Date.now() })
      },
      (error: Refusal) => {
        if (over.signal.aborted) return
        isAsking.current = false
        const waitS = error.retryAfterS
        const isSoon = waitS > 0 && (error.status === 404 || error.status === 429)
        if (isSoon) timer = setTimeout(() => setRound((one) => one + 1), waitS * 1_000)
        // Too many concurrent questions: the reader need not know.
        if (isSoon && error.status === 429) return
        setState((before) => {
          const kept = before?.of === path ? before : undefined
          return { of: path, data: kept?.data, error, atMs: kept?.atMs }
        })
      },
    )
    return () => {
      clearTimeout(timer)
      over.abort()
    }
  }, [path, round, session])
  useEffect(() => {
    if (everyMs === undefined) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && !isAsking.current) setRound((one) => one + 1)
    }, everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  const own = state?.of === path ? state : undefined
  return { data: own?.data, error: own?.error, atMs: own?.atMs, again: () => setRound((one) => one + 1) }
}
