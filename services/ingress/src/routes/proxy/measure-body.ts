import type { IncomingMessage } from 'node:http'
import type { RequestHead, RequestMeasure, RequestMeter } from '@weir/meters/measure-request.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import { costUnreadable, valuesAt } from '../../http/read-cost.ts'

/** A request's head as meters read it. */
export const headOf = ({ headers, url = '' }: IncomingMessage): RequestHead => ({
  values: (source) => valuesAt(source, { headers, url }),
})

/** Hands a body on to its meter, as long as `take` has space for it. */
export function scanInto(measuring: RequestMeter, take: (bytes: number) => boolean) {
  let isFull = false
  return {
    isFull: () => isFull,
    scan(chunk: Buffer): boolean {
      isFull = !take(chunk.length)
      if (!isFull) measuring.write(chunk)
      return !isFull
    },
  }
}

/** What a request may use, or why nobody can tell. */
export function measured(measuring: RequestMeter | undefined): {
  readonly measure: RequestMeasure | undefined
  readonly problem?: Problem
} {
  const found = measuring?.end()
  if (found === undefined || !('wrong' in found)) return { measure: found }
  return { measure: undefined, problem: costUnreadable(`This route is metered, but ${found.wrong}.`) }
}
