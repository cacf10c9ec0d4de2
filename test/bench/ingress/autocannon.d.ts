/** What drive-load.ts and the browser's tests use of autocannon, which comes without types. */
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  export interface Client {
    setHeadersAndBody(headers: Readonly<Record<string, string>>, body: string | undefined): void
  }
  export interface Options {
    readonly url: string
    readonly method: 'GET' | 'POST'
    readonly connections: number
    /** Requests a second over all connections; as many as they can if not given. */
    readonly overallRate?: number
    /** Seconds. */
    readonly duration: number
    /** Milliseconds between two looks at whether the duration is over. */
    readonly sampleInt: number
    /** Seconds. */
    readonly timeout: number
    readonly setupClient: (client: Client) => void
  }
  export interface Result {
    readonly '2xx': number
    readonly non2xx: number
    readonly errors: number
  }
  /** Emits `response` with the client, the status, the bytes and the milliseconds it took. */
  export default function autocannon(
    options: Options,
    done: (error: Error | null, result: Result) => void,
  ): EventEmitter<{ response: [client: Client, status: number, bytes: number, ms: number] }>
}
