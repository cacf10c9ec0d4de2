import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Target } from './read-target.ts'

/** A request as it came, before anything is known of it but where it goes. */
export interface Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: Target
  /** By `performance.now()`. */
  readonly startedAt: number
  /** What the client wants its connection to become; undefined for plain requests. */
  readonly protocol: string | undefined
  /** Lets the client send its body, where it waits to be told. */
  readonly mayContinue: () => void
}
