import { type IncomingMessage, ServerResponse } from 'node:http'
import { buckets, Histogram } from '@weir/runtime/histogram.ts'
import { LabelCells } from '@weir/runtime/label-cells.ts'
import { TokenUsage } from './token-usage.ts'

/** Classes of statuses; two of 4xx are apart: refusals by a limit, and clients that hung up before their answer. */
const codes = ['2xx', '3xx', '4xx', '5xx', '429', '499'] as const

/** As nginx records a client that hung up. */
export const clientGoneStatus = 499

/** By index in `codes`. None of 1xx ends a request. */
function indexOf(status: number): number {
  if (status === 429) return 4
  return status === clientGoneStatus ? 5 : Math.floor(status / 100) - 2
}

/** The time from the heads of requests until the ends of their answers, by code. */
class AnswerTimes {
  readonly byCode = codes.map((code) => [code, new Histogram(buckets.http)] as const)

  observe(status: number, seconds: number): void {
    this.byCode[indexOf(status)]?.[1].observe(seconds)
  }
}

/** Upstreams that have series of their own, of 17 each. */
const upstreamsMax = 20

/** The times of requests over HTTP: of each entry point's, and of those that were forwarded by their upstream. */
export class HttpMetrics {
  readonly answers = {
    proxy: new AnswerTimes(),
    check: new AnswerTimes(),
    batch: new AnswerTimes(),
    authorize: new AnswerTimes(),
    /** What the api answers besides: settlements, pauses, its description, unknown addresses. */
    other: new AnswerTimes(),
  } as const
  /** From a request's sending until the end of the answer. */
  readonly upstreams = new LabelCells(upstreamsMax, () => new Histogram(buckets.http))
  /** What metered requests used. */
  readonly tokens = new TokenUsage()
}

/** An answer that observes its time when it ends. */
abstract class TimedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  readonly startedAt = performance.now()
  protected abstract get times(): AnswerTimes

  override end(...given: unknown[]): this {
    if (!this.writableEnded) this.observe(this.statusCode)
    return super.end(...(given as []))
  }

  observe(status: number): void {
    this.times.observe(status, (performance.now() - this.startedAt) / 1_000)
  }
}

/** Returns the class of a listener's answers, by the address of a request as the router sees it. */
export function timedResponses(timesOf: (url: string) => AnswerTimes): typeof ServerResponse {
  return class<Request extends IncomingMessage> extends TimedResponse<Request> {
    protected override get times(): AnswerTimes {
      return timesOf(this.req.url ?? '')
    }
  }
}

/** When the head of a request was read, by `performance.now()`; now where no listener made the answer, as in tests. */
export const startedAtOf = (response: ServerResponse): number =>
  response instanceof TimedResponse ? response.startedAt : performance.now()

/** Observes an answer that was broken off, and so never ends. */
export function observeBrokenOff(response: ServerResponse, status: number): void {
  if (response instanceof TimedResponse) response.observe(status)
}
