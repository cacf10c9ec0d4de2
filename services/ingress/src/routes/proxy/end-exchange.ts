import { encodeOutcomeOpen } from '@weir/contracts/outcome.v1.ts'
import type { Settling } from '@weir/decide/correct/settle.ts'
import type { Usage, UsageSettler } from '@weir/decide/correct/usage-settler.ts'
import type { Histogram } from '@weir/runtime/histogram.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import { recordedMethod } from '../../http/recorded-method.ts'
import { clientGoneStatus, observeBrokenOff } from '../../http/timed-response.ts'
import type { TokenUsage } from '../../http/token-usage.ts'
import type { Ports } from '../../ports.ts'
import type { RequestTrace } from '../../trace/request-trace.ts'
import type { MeteredExchange, SpanAttributes } from './metered-exchange.ts'
import type { ProxiedRequest, ProxyOutcome } from './proxied-request.ts'

/** What ends of exchanges are recorded and settled with. */
export type EndingPorts = Pick<Ports, 'outcomes' | 'clock'> & {
  /** Refunds requests that the upstream failed. */
  readonly settling?: Pick<Settling, 'refund'> | undefined
  /** Settles what metered requests used; without it what they hold stays. */
  readonly usage?: Pick<UsageSettler, 'settle'> | undefined
  readonly tokens: TokenUsage
}

/** A request that is with its upstream, since `atMs` by `performance.now()`. */
export interface UpstreamCall {
  readonly atMs: number
  readonly duration: Histogram
}

/** What is done once when an exchange ends, and once when nothing of it comes any more. */
export function createEnding(ports: EndingPorts, log: Logger) {
  /** What settles answers that are read on after their clients have gone: as many as upstreams have places. */
  const drained = new Map<ProxiedRequest, () => void>()
  /** Settlements that wait for decoders: for 2 s each. */
  const decoding = new Set<Promise<void>>()
  const whenDecoded = ({ decoder }: MeteredExchange, settle: () => void) => {
    if (decoder === undefined) return settle()
    const done = decoder.end().then(settle)
    decoding.add(done)
    void done.finally(() => decoding.delete(done))
  }

  return {
    ended(proxied: ProxiedRequest, outcome: ProxyOutcome, sent?: UpstreamCall): void {
      const endedAt = performance.now()
      const { metered } = proxied
      const isRefunded = proxied.route.refundOn?.includes(outcome.status) === true
      const usage = () => metered?.usage(outcome, sent !== undefined, endedAt - proxied.startedAt, isRefunded)
      // What is read on or decoded says its usage after its span has ended.
      const used = metered?.isDrained === true || metered?.decoder !== undefined ? undefined : usage()
      observeEnd(proxied, outcome, { startedAt: sent?.atMs ?? endedAt, endedAt }, used, sent)
      recordOutcome(ports, proxied, outcome, endedAt)
      const settle = () => settleUsage(ports, proxied, used ?? usage(), log)
      if (metered === undefined) refund(ports, proxied, isRefunded, log)
      else if (metered.isDrained) drained.set(proxied, () => whenDecoded(metered, settle))
      else whenDecoded(metered, settle)
    },
    /** At a stop: what is still read on is settled as if it had broken off, once what came is decoded. */
    async settleDrained(): Promise<void> {
      for (const settle of drained.values()) settle()
      drained.clear()
      await Promise.all(decoding)
    },
    released(proxied: ProxiedRequest): void {
      drained.get(proxied)?.()
      drained.delete(proxied)
    },
  }
}

interface Times {
  readonly startedAt: number
  readonly endedAt: number
}

/** Observes the upstream's time, and the answer's where it does not come to its own end. */
function observeEnd(
  proxied: ProxiedRequest,
  outcome: ProxyOutcome,
  times: Times,
  used: Usage | undefined,
  sent: UpstreamCall | undefined,
): void {
  const { request, response, trace, metered } = proxied
  const { error } = outcome
  if (trace !== undefined) traceEnd(proxied, trace, outcome, times, used && metered?.attributes(used))
  const isClientGone = error === 'client_gone'
  if (sent !== undefined && !isClientGone) sent.duration.observe((times.endedAt - times.startedAt) / 1_000)
  const isBrokenOff = response.destroyed || request.socket.destroyed || response.headersSent
  if (error !== '' && isBrokenOff) observeBrokenOff(response, isClientGone ? clientGoneStatus : 502)
}

/** The span of the upstream's work, which the upstream was given as the parent of its own. */
function traceEnd(
  { upstream }: ProxiedRequest,
  trace: RequestTrace,
  { status, error }: ProxyOutcome,
  times: Times,
  usage: SpanAttributes | undefined,
): void {
  const attributes = {
    ...usage,
    'weir.upstream': upstream.name,
    'http.response.status_code': status,
    'error.type': error || undefined,
  }
  const ids = { name: 'proxy', kind: 'client', spanId: trace.upstreamSpanId } as const
  trace.addChild({ ...ids, ...times, attributes, isError: error !== '' })
  if (error !== '' && error !== 'client_gone') trace.breakOff(502)
  // The answer of a tunnel was detached from its connection, and is not closed with it.
  if (status === 101) trace.end({ 'http.response.status_code': status }, false)
}

/** Records how the request ended. An outcome that the journal rejects is only missed. */
function recordOutcome(
  { outcomes, clock }: EndingPorts,
  proxied: ProxiedRequest,
  outcome: ProxyOutcome,
  endedAt: number,
): void {
  const { decisionId, request, route, caller, upstream, startedAt } = proxied
  // Without a record of the decision, the outcome could not be looked up.
  if (decisionId === '') return
  const subject = caller.subject.id
  const line = encodeOutcomeOpen({
    id: decisionId,
    tsMs: clock.nowMs(),
    subject,
    route: route.template,
    method: recordedMethod(request.method ?? ''),
    ...outcome,
    durationMs: Math.round((endedAt - startedAt) * 1_000) / 1_000,
    upstream: upstream.name,
  })
  outcomes.append(subject, line)
}

/** Refunds the charge where the route says so. */
function refund({ settling }: EndingPorts, { charged }: ProxiedRequest, isRefunded: boolean, log: Logger) {
  if (charged === undefined || !isRefunded) return
  settling?.refund(charged).catch((error: unknown) => log.error({ err: error }, 'charge not refunded'))
}

/** Settles what it used, and the cost where the route says so. */
function settleUsage(
  { usage, tokens }: EndingPorts,
  { metered, path }: ProxiedRequest,
  used: Usage | undefined,
  log: Logger,
): void {
  if (metered === undefined || used === undefined) return
  tokens.observe(metered.form.preset, path, used)
  usage?.settle(metered.charged, used).catch((error: unknown) => log.error({ err: error }, 'not settled'))
}
