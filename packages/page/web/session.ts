import type { Session as OpenSession } from '@weir/api/access.ts'
import { useEffect, useState } from 'preact/hooks'

/** Who is signed in. */
export interface Session extends OpenSession {
  /** Whether the console no longer knows it: the page stays, and asks for a token. */
  readonly isOver?: boolean
}

/** `unknown` until the console has said. */
export type SignedIn = Session | 'nobody' | 'unknown'

let now: SignedIn = 'unknown'
const listeners = new Set<(session: SignedIn) => void>()

export const sessionNow = (): SignedIn => now

export function setSession(session: SignedIn): void {
  now = session
  for (const listener of listeners) listener(session)
}

/** The console does not know the session any more. */
export function lapse(): void {
  if (typeof now !== 'object') setSession('nobody')
  else if (now.isOver !== true) setSession({ ...now, isOver: true })
}

export function useSession(): SignedIn {
  const [session, set] = useState(now)
  useEffect(() => {
    listeners.add(set)
    set(now)
    return () => {
      listeners.delete(set)
    }
  }, [])
  return session
}

/** Whether the session may do what takes this scope. */
export function may(scope: string): boolean {
  return (
    typeof now === 'object' && now.subjects === null && (now.scopes.includes(scope) || now.scopes.includes('admin'))
  )
}

/** Whether the session is limited to subjects, as a customer's is. */
export const isOwn = (): boolean => typeof now === 'object' && now.subjects !== null
