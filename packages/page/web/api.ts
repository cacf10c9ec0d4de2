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

/** Questions that a person waits for. */
const waitMs = 30_000

/** Asks, and reads what is no refusal. Rejects with a `Refusal`. */
async function answer<T>(path: string, read: (response: Response) => Promise<T>, init: RequestInit): Promise<T> {
  const signals = [AbortSignal.timeout(waitMs), init.signal ?? []].flat()
  try {
    const response = await fetch(path, { ...init, signal: AbortSignal.any(signals) })
    if (response.ok) return await read(response)
    if (response.status === 401) lapse()
    throw new Refusal(response.status, await json(response), Number(response.headers.get('retry-after') ?? 0))
  } catch (error) {
    if (error instanceof Refusal) throw error
    const detail = error instanceof SyntaxError ? 'The response is not JSON.' : 'The console does not answer.'
    throw new Refusal(0, { detail })
  }
}

async function json(response: Response) {
  const text = await response.text()
  return text === '' ? {} : JSON.parse(text)
}

const etagOf = ({ headers }: Response) => headers.get('etag') ?? ''

/** Asks the API. Rejects with a `Refusal`. */
export const ask = <T>(path: string, signal?: AbortSignal): Promise<T> =>
  answer<T>(path, json, { signal: signal ?? null })

/** The settings of a part of the policy, with what says whether they have changed since. */
export interface Settings {
  readonly body: Readonly<Record<string, unknown>>
  readonly etag: string
}

/** Asks for the settings of a part of the policy. Rejects with a `Refusal`. */
export const askSettings = (path: string, signal?: AbortSignal): Promise<Settings> =>
  answer(path, async (response) => ({ body: await json(response), etag: etagOf(response) }), { signal: signal ?? null })

/** Asks for the policy as a file, with what says whether it has changed since. Rejects with a `Refusal`. */
export const askPolicy = (): Promise<{ readonly text: string; readonly etag: string }> =>
  answer('/v1/policy', async (response) => ({ text: await response.text(), etag: etagOf(response) }), {
    headers: { accept: 'application/yaml' },
  })

/** Changes something; a text is a policy. Rejects with a `Refusal`. */
export async function send<T>(
  method: string,
  path: string,
  body?: object | string,
  more: Readonly<Record<string, string>> = {},
): Promise<T> {
  const session = sessionNow()
  const isText = typeof body === 'string'
  const headers: Record<string, string> = { ...more }
  if (typeof session === 'object') headers['X-Weir-CSRF'] = session.csrf
  if (body !== undefined) headers['Content-Type'] = isText ? 'application/yaml' : 'application/json'
  return answer(path, json, {
    method,
    headers,
    body: body === undefined || isText ? (body ?? null) : JSON.stringify(body),
  })
}

export const signIn = async (token: string): Promise<void> =>
  setSession(await send<Session>('POST', '/session', { token }))

/** A question on its way, answered or refused; an answer stays when the next one fails. */
export interface AnswerState<T> {
  readonly data: T | undefined
  readonly error: Refusal | undefined
  /** When the data came, by the clock of the browser. */
  readonly atMs: number | undefined
  readonly again: () => void
}

/** What asks again for what is shown. */
const shown = new Set<() => void>()
let lastAnswerMs: number | undefined

/** Asks again for all that is shown, but for what somebody may be editing. */
export function refresh(): void {
  for (const again of shown) again()
}
/** When the last answer came, by the clock of the browser. */
export const answeredAt = (): number | undefined => lastAnswerMs

/** Asks whenever the path changes, and every `everyMs` while the page is seen. No path asks nothing. */
export function useAnswer<T>(
  path: string | undefined,
  everyMs?: number,
  question: (path: string, signal: AbortSignal) => Promise<T> = ask,
): AnswerState<T> {
  const [state, setState] = useState<Omit<AnswerState<T>, 'again'> & { readonly of: string | undefined }>()
  const [round, setRound] = useState(0)
  const again = () => setRound((one) => one + 1)
  // After a new sign-in the page goes on where it was.
  const session = useSession()
  // The next round waits for the answer of this one: a slow refusal is told as well.
  const isAsking = useRef(false)
  useEffect(() => {
    if (path === undefined) return
    const over = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    isAsking.current = true
    question(path, over.signal).then(
      (data) => {
        if (over.signal.aborted) return
        isAsking.current = false
        lastAnswerMs = Date.now()
        setState({ of: path, data, error: undefined, atMs: lastAnswerMs })
      },
      (error: Refusal) => {
        if (over.signal.aborted) return
        isAsking.current = false
        const waitS = error.retryAfterS
        const isSoon = waitS > 0 && (error.status === 404 || error.status === 429)
        if (isSoon) timer = setTimeout(again, waitS * 1_000)
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
    if (question !== ask) return
    shown.add(again)
    return () => {
      shown.delete(again)
    }
  }, [])
  useEffect(() => {
    if (everyMs === undefined) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && !isAsking.current) again()
    }, everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  const own = state?.of === path ? state : undefined
  return { data: own?.data, error: own?.error, atMs: own?.atMs, again }
}
