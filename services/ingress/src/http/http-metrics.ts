import { buckets, Histogram } from '@weir/runtime/histogram.ts'
import { LabelCells } from '@weir/runtime/label-cells.ts'
import { AnswerTimes } from './timed-response.ts'

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
}
