import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  formatTrace,
  formatTraceparent,
  newSpanId,
  parseTraceparent,
  type TraceContext,
} from '@weir/contracts/trace-context.ts'
import type { Decision } from '@weir/core/limits/decision.ts'
import type { DecisionRequest, DecisionTrace, RecordedDecision, UnauthenticatedRequest } from '@weir/decide/types.ts'
import { isTrustedProxy } from '@weir/identity/caller-address.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { EndedSpan, Tracing } from '@weir/runtime/tracing.ts'
import { clientGoneStatus } from '../http/timed-response.ts'

/** W3C's own bound for what is passed on. */
const tracestateMax = 512

/** Milliseconds since the epoch at a time of `performance.now()`. */
const wallMs = (atMs: number) => performance.timeOrigin + atMs

type Attributes = EndedSpan['attributes']
type ChildSpan = Pick<EndedSpan, 'name' | 'kind' | 'attributes' | 'isError'> & {
  readonly spanId?: string | undefined
  /** By `performance.now()`. */
  readonly startedAt: number
  readonly endedAt: number
}

type Header = string | readonly string[] | undefined

/** Begins the traces of requests. */
export class RequestTraces {
  readonly #tracing: Tracing
  readonly #showsSubjects: boolean

  constructor(tracing: Tracing, showsSubjects: boolean) {
    this.#tracing = tracing
    this.#showsSubjects = showsSubjects
  }

  /**
   * Returns undefined for a request over HTTP that is not to be traced. Who `hasToken` for checks of any subject is
   * trusted, too.
   */
  begin(
    { headers, socket }: { readonly headers: IncomingHttpHeaders; readonly socket: Socket },
    { identity }: Pick<Policy, 'identity'>,
    hasToken = false,
  ): RequestTrace | undefined {
    const { traceparent } = headers
    const isTrusted = traceparent !== undefined && (hasToken || isTrustedProxy(socket, identity))
    return this.join(traceparent, headers.tracestate, isTrusted)
  }

  /**
   * A trusted proxy's `traceparent` is the parent, and decides whether the request is traced. An untrusted peer's is
   * a link of a trace that begins here, and its flag says nothing: else anybody could have everything traced.
   */
  join(traceparent: Header, tracestate: Header, isTrusted: boolean): RequestTrace | undefined {
    const tracing = this.#tracing
    const caller = traceparent === undefined ? undefined : parseTraceparent(String(traceparent))
    const parent = isTrusted ? caller : undefined
    if (!tracing.sample(parent && (parent.isSampled ? 'sampled' : 'unsampled'))) return undefined
    const state = parent === undefined ? '' : String(tracestate ?? '')
    return new RequestTrace(tracing, {
      showsSubjects: this.#showsSubjects,
      parent,
      tracestate: state.length <= tracestateMax ? state : '',
      link: parent === undefined ? caller : undefined,
    })
  }
}

interface Origin {
  readonly showsSubjects: boolean
  readonly parent?: TraceContext | undefined
  readonly link?: TraceContext | undefined
  readonly tracestate?: string
}

/**
 * A request that is traced: its span, and those within it, which are handed over together when it ends. Where the trace
 * begins here, its id is that of the first decision, so that `Weir-Decision` finds it.
 */
export class RequestTrace {
  readonly spanId = newSpanId()
  readonly showsSubjects: boolean
  /** For the upstream; empty for none. */
  readonly tracestate: string
  /** Of the span of the upstream's work. */
  readonly upstreamSpanId = newSpanId()
  readonly #tracing: Tracing
  #name = ''
  #startedAt = 0
  readonly #parentSpanId: string | undefined
  readonly #links: readonly TraceContext[]
  readonly #children: ChildSpan[] = []
  #traceId: string | undefined
  #attributes: Attributes = {}
  #isEnded = false
  #brokenOff = clientGoneStatus

  constructor(tracing: Tracing, { showsSubjects, parent, link, tracestate = '' }: Origin) {
    this.#tracing = tracing
    this.#traceId = parent?.traceId
    this.#parentSpanId = parent?.spanId
    this.#links = link === undefined ? [] : [link]
    this.showsSubjects = showsSubjects
    this.tracestate = tracestate
  }

  /** Names it: `GET /orders/:id`, with the template and never the path. `startedAt` is by `performance.now()`. */
  start(name: string, startedAt: number, attributes: Attributes): this {
    this.#name = name
    this.#startedAt = startedAt
    this.#attributes = attributes
    return this
  }

  /** The same of a request over HTTP, whose span ends when its answer does, or is broken off. */
  startHttp(method: string, template: string, startedAt: number, response: ServerResponse): this {
    // A template may begin with its method.
    const route = template.slice(template.indexOf(' ') + 1)
    response.once('close', () => {
      const statusCode = response.writableFinished ? response.statusCode : this.#brokenOff
      this.end({ 'http.response.status_code': statusCode }, statusCode >= 500)
    })
    return this.start(`${method} ${route}`, startedAt, { 'http.request.method': method, 'http.route': route })
  }

  /** What a decision of the request is traced by. */
  decision(): DecisionTrace {
    return new DecisionSpans(this)
  }

  /** The span of the request. The first decision that asks gives the trace its id, where it begins here. */
  contextFor(decisionId: string): TraceContext {
    this.#traceId ??= decisionId.replaceAll('-', '')
    return { traceId: this.#traceId, spanId: this.spanId }
  }

  /** For the upstream: the span that its work is in. */
  get upstreamTraceparent(): string {
    return formatTraceparent({ traceId: this.#ownTraceId(), spanId: this.upstreamSpanId })
  }

  describe(attributes: Attributes): void {
    this.#attributes = { ...this.#attributes, ...attributes }
  }

  /** Its answer was broken off, as if by this status. */
  breakOff(status: number): void {
    this.#brokenOff = status
  }

  addChild(child: ChildSpan): void {
    // An upstream may end after the client is gone.
    if (this.#isEnded) this.#recordChild(child)
    else this.#children.push(child)
  }

  #recordChild({ startedAt, endedAt, spanId = newSpanId(), ...child }: ChildSpan): void {
    const times = { startMs: wallMs(startedAt), endMs: wallMs(endedAt) }
    this.#tracing.record({ ...child, ...times, traceId: this.#ownTraceId(), spanId, parentSpanId: this.spanId })
  }

  /** Ends the request's span with its answer, now. */
  end(attributes: Attributes, isError: boolean): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const traceId = this.#ownTraceId()
    for (const child of this.#children) this.#recordChild(child)
    this.#tracing.record({
      name: this.#name,
      kind: 'server',
      traceId,
      spanId: this.spanId,
      parentSpanId: this.#parentSpanId,
      startMs: wallMs(this.#startedAt),
      endMs: wallMs(performance.now()),
      links: this.#links,
      isError,
      attributes: { ...this.#attributes, ...attributes },
    })
  }

  #ownTraceId(): string {
    this.#traceId ??= randomBytes(16).toString('hex')
    return this.#traceId
  }
}

/** One decision of a traced request: how long its parts took. */
class DecisionSpans implements DecisionTrace {
  readonly #request: RequestTrace
  #askedAt = performance.now()
  #decidedAt = this.#askedAt
  #bytes = 0

  constructor(request: RequestTrace) {
    this.#request = request
  }

  asked(): void {
    this.#askedAt = performance.now()
  }

  decided(): void {
    this.#decidedAt = performance.now()
  }

  fieldFor(decisionId: string): string {
    return formatTrace(this.#request.contextFor(decisionId))
  }

  appended(line: string): void {
    this.#bytes = line.length
  }

  recorded(ask: DecisionRequest | UnauthenticatedRequest, { id, decision }: RecordedDecision): void {
    const about = attributesOf(ask, id, decision, this.#request.showsSubjects)
    if (ask.entryPoint !== 'batch') this.#request.describe(about)
    const decided = { 'db.system.name': 'redis', 'weir.cached': decision.isCached === true, ...about }
    this.#request.addChild({
      name: 'decide',
      kind: 'client',
      startedAt: this.#askedAt,
      endedAt: this.#decidedAt,
      attributes: decided,
    })
    if (this.#bytes === 0) return
    const attributes = { 'weir.record.bytes': this.#bytes }
    const times = { startedAt: this.#decidedAt, endedAt: performance.now() }
    this.#request.addChild({
      name: 'journal append',
      kind: 'internal',
      ...times,
      attributes,
      isError: id === undefined,
    })
  }
}

function attributesOf(
  ask: DecisionRequest | UnauthenticatedRequest,
  id: string | undefined,
  { allowed, reason, deniedBy }: Decision,
  showsSubjects: boolean,
): Attributes {
  const { route, entryPoint } = ask
  return {
    'weir.entry_point': entryPoint,
    'weir.route': route.template,
    'weir.reason': reason,
    'weir.outcome': allowed ? 'allow' : 'deny',
    ...(id === undefined ? {} : { 'weir.decision.id': id }),
    ...(deniedBy === '' ? {} : { 'weir.denied_by': deniedBy }),
    ...('subject' in ask ? { 'weir.plan': ask.subject.plan.name } : {}),
    ...('subject' in ask && showsSubjects ? { 'weir.subject': ask.subject.id } : {}),
  }
}
