import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import type { DecisionLog } from '@weir/ingress/decide/ports.ts'
import { DecisionLines } from '@weir/ingress/decide/record/decision-lines.ts'
import { HttpMetrics } from '@weir/ingress/http/http-metrics.ts'
import { timedResponses } from '@weir/ingress/http/timed-response.ts'
import { buckets, Histogram } from '@weir/runtime/histogram.ts'
import { createBusyLogger } from '@weir/runtime/logger.ts'
import { type BenchOptions, type BenchReport, spread } from './report.ts'
import { compare, deciding, type Pair, type Work } from './thread/deciding.ts'

/** One `DecisionLines` writes no more in a second. */
const linesEach = 1_000
/** More than a turn writes. */
const lineBytesMax = 64 * 1_024 ** 2
const nextTurn = promisify(setImmediate)

/**
 * Decides in turns of the event loop of their own, as requests come that are far between, and writes lines about it
 * into nothing: what their reader does with them is another's.
 */
const logging =
  (which: 'off' | 'sampled' | 'all'): Work =>
  async (calls) => {
    const out = createBusyLogger('ingress', lineBytesMax, '/dev/null')
    const written = { log: out.log, dropped: () => out.dropped }
    for (let left = calls; left > 0; left -= linesEach) {
      let lines: DecisionLines | undefined
      const logged = (log: DecisionLog) => {
        if (which === 'off') return log
        lines = new DecisionLines(log, which, written)
        return lines
      }
      await deciding({ isCounted: true, logged, afterEach: nextTurn })(linesEach)
      lines?.close()
    }
    await out.close()
    if (out.dropped > 0) throw new Error(`${out.dropped} lines were dropped`)
  }

/** Makes answers and ends them, without a connection. */
function answering(Answer: typeof ServerResponse): Work {
  const request = new IncomingMessage(new Socket())
  request.url = '/v1/check'
  return async (calls) => {
    for (let call = 0; call < calls; call += 1) {
      const answer = new Answer(request)
      answer.writeHead(200, ['content-length', '2'])
      answer.end('{}')
    }
  }
}

/** What is observed besides: a call to Redis with one decision, its write to the journal, and an upstream. */
const others: Work = async (calls) => {
  const [call, size, write, upstream] = [buckets.decision, [1, 2, 4, 8, 16, 32], buckets.decision, buckets.http].map(
    (bounds) => new Histogram(bounds),
  )
  for (let at = 0; at < calls; at += 1) {
    const sentMs = performance.now()
    size?.observe(1)
    call?.observe((performance.now() - sentMs) / 1_000)
    write?.observe(0.000_1)
    upstream?.observe((performance.now() - sentMs) / 1_000)
  }
}

const lines = (which: 'sampled' | 'all'): Pair => ({
  label: `WEIR_LOG_DECISIONS=${which}: a decision`,
  ...{ calls: 3_000, ofAllThreads: true, without: logging('off'), withIt: logging(which) },
})

/** What metrics, and decisions as lines of the log, take: the same work with them and without, in turns. */
export async function run({ rounds, progress }: BenchOptions): Promise<BenchReport> {
  const { answers } = new HttpMetrics()
  const Answer = timedResponses(() => answers.check)
  const pairs: readonly Pair[] = [
    {
      label: 'a decision under two limits',
      calls: 30_000,
      without: deciding({ isCounted: false }),
      withIt: deciding({ isCounted: true }),
    },
    { label: 'an answer over HTTP', calls: 60_000, without: answering(ServerResponse), withIt: answering(Answer) },
    { label: 'a call to Redis, a write, an upstream', calls: 200_000, without: async () => {}, withIt: others },
    ...[lines('sampled'), lines('all')],
  ]
  const found = pairs.map((pair) => ({ pair, without: [] as number[], added: [] as number[] }))
  const sums: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    progress(`round ${round + 1} of ${rounds}`)
    let sum = 0
    for (const { pair, ...costs } of found) {
      const { without, added } = await compare(pair)
      costs.without.push(without)
      costs.added.push(added)
      if (pair.ofAllThreads !== true) sum += added
    }
    sums.push(sum)
  }
  const unit = 'µs of the main thread'
  const rows = found.flatMap(({ pair: { label, ofAllThreads }, without, added }) => {
    const what = ofAllThreads ? { unit: 'µs of all threads', its: '  its lines' } : { unit, its: '  its metrics' }
    return [
      { label, unit: what.unit, ...spread(without) },
      { label: what.its, unit: what.unit, ...spread(added) },
    ]
  })
  return {
    name: 'metrics',
    rows: [...rows, { label: 'all metrics of a decision (target: at most 1)', unit, ...spread(sums) }],
    ratios: [],
  }
}
