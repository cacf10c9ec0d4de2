import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { OutcomeError } from '@weir/contracts/outcome.v1.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import type { Dispatcher } from 'undici'
import { clientGoneStatus } from '../../http/timed-response.ts'
import { busyRetrySeconds, upstreamBusy, upstreamFailure, writeProblem } from './answers.ts'
import { ClientBody } from './client-body.ts'
import { addAnswerHeaders, answerTrailers, headText } from './proxied-headers.ts'
import type { ProxiedRequest, ProxyOutcome } from './proxied-request.ts'
import type { RefusalForm } from './supplier-refusal.ts'

type Controller = Dispatcher.DispatchController

/** What an exchange reports of itself. */
export interface ExchangeEvents {
  /** Called once, whatever happens: the client gets nothing more. */
  ended(outcome: ProxyOutcome): void
  /**
   * Called once, unless protocols were switched: undici holds no connection for it any more. `isKnown`: the upstream
   * has ended it; else it learns only from its connection that nobody waits.
   */
  released(isKnown: boolean): void
  /** The upstream closed the connection as the request went out: it is sent again, once, over a new one. */
  stale(): void
  /** The upstream failed for another reason than the client. */
  failed(error: Error): void
  /** The upstream has switched protocols, which ends the exchange; `ended` is not called. */
  switched(headers: IncomingHttpHeaders, socket: Duplex): void
}

/** An answer that nobody gets is read on for at most two minutes: a model has written its longest by then. */
const drainMsMax = 120_000

/** Methods that ask for no effect (RFC 9110 section 9.2.1). */
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/** Whether a connection ended that had carried an answer before, or may have: a reset does not say. */
function isStale(error: Error & { readonly code?: string; readonly socket?: { readonly bytesRead: number } }): boolean {
  if (error.code === 'UND_ERR_SOCKET') return (error.socket?.bytesRead ?? 0) > 0
  return error.code === 'ECONNRESET' || error.code === 'EPIPE'
}

/** Copying so many bytes into a text takes less than a list of two buffers does in the kernel. */
const textBytesMax = 4_096

/**
 * Writes a whole short body with its head as one text: see `sendJson`. Over TLS a write is not done when it returns,
 * and Node would add a second.
 */
function writeWhole(response: ServerResponse, body: Buffer): boolean {
  const { socket } = response
  if (body.length > textBytesMax || response.chunkedEncoding || socket instanceof TLSSocket) return response.write(body)
  const isTaken = response.write(body.toString('latin1'), 'latin1')
  socket?.uncork()
  return isTaken
}

/**
 * One request with an upstream, as undici's handler: the answer is written to the client as fast as the client reads
 * it. undici's timeouts bound the upstream, and the socket's timeout the client.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #proxied: ProxiedRequest
  readonly #body: ClientBody | Buffer | null
  readonly #events: ExchangeEvents
  #controller: Controller | undefined
  /** Why the client gets no more; set when it is the client's doing. */
  #clientFault: Error | undefined
  #status = 0
  #bytesOut = 0
  /** Of the whole body, where it comes with its head and the upstream says its length; else no number. */
  #bodyBytes = Number.NaN
  #hasEnded = false
  #drainTimer: NodeJS.Timeout | undefined
  /** Whether the request may be sent once more: no other effect is lost or doubled (RFC 9110 section 9.2.2). */
  #isRepeatable: boolean

  constructor(proxied: ProxiedRequest, body: ClientBody | Buffer | null, events: ExchangeEvents) {
    this.#proxied = proxied
    this.#body = body
    this.#events = events
    const { request, response } = proxied
    this.#isRepeatable = body === null && safeMethods.has(request.method ?? '')
    response.on('close', () => this.#clientGone())
    response.on('timeout', () => this.#clientSilent())
  }

  /** The client gets nothing more: a request that is not with the upstream yet must not be sent to it. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** No slot with the upstream is left for it. */
  refuseBusy(): void {
    if (this.#hasEnded) return
    const { response, ownHeaders } = this.#proxied
    this.#end(upstreamBusy.status, 'busy')
    writeProblem(response, upstreamBusy, [...ownHeaders, 'retry-after', `${busyRetrySeconds}`], this.#form)
    // Its client may go on to send it, and see its answer.
    if (this.#body instanceof ClientBody) this.#body.destroy()
  }

  /** The client sends its body slower than it may. */
  refuseSlow(): void {
    this.#giveUpClient('The body came too slowly. Send it faster, or in smaller requests.')
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#clientFault !== undefined) controller.abort(this.#clientFault)
  }

  onRequestUpgrade(_controller: Controller, _status: number, headers: IncomingHttpHeaders, socket: Duplex): void {
    if (this.#hasEnded) {
      socket.destroy()
      this.#events.released(false)
      return
    }
    this.#hasEnded = true
    this.#events.switched(headers, socket)
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    this.#isRepeatable = false
    if (status < 200) {
      this.#passInformation(status, headers)
      return
    }
    const { response, ownHeaders, upstream, cors, metered } = this.#proxied
    metered?.begins(headers)
    // Its client has gone, and it is read for what it says.
    if (this.#hasEnded) return
    const all = [...ownHeaders]
    addAnswerHeaders(all, headers, upstream)
    if (upstream.cors !== undefined && cors === undefined) all.push('vary', 'Origin')
    response.writeHead(status, all)
    this.#status = status
    this.#bodyBytes = Number(headers['content-length'] ?? Number.NaN)
    // The first bytes of the body mostly come along, and then head and body leave in one packet.
    process.nextTick(() => {
      this.#bodyBytes = Number.NaN
      if (this.#bytesOut === 0 && !this.#hasEnded) response.flushHeaders()
    })
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    const { response, metered } = this.#proxied
    if (!this.#hasEnded) {
      const shown = metered?.shown(chunk) ?? chunk
      this.#bytesOut += shown.length
      const isWhole = shown.length === this.#bodyBytes
      if (!(isWhole ? writeWhole(response, shown) : response.write(shown))) {
        controller.pause()
        response.once('drain', () => controller.resume())
      }
    }
    metered?.reads(chunk)
  }

  onResponseEnd(_controller: Controller, trailers: IncomingHttpHeaders): void {
    const { response } = this.#proxied
    clearTimeout(this.#drainTimer)
    this.#proxied.metered?.endsWith(trailers)
    this.#events.released(true)
    if (this.#hasEnded) return
    this.#end(this.#status, '')
    for (const _ in trailers) {
      response.addTrailers(answerTrailers(trailers))
      break
    }
    response.end(this.#proxied.metered?.rest())
  }

  onResponseError(_controller: Controller | undefined, error: Error): void {
    if (!this.#hasEnded && this.#isRepeatable && isStale(error)) {
      this.#isRepeatable = false
      this.#events.stale()
      return
    }
    clearTimeout(this.#drainTimer)
    const { code = '' } = error as Error & { readonly code?: string }
    this.#events.released(this.#clientFault === undefined && !code.includes('TIMEOUT'))
    if (this.#hasEnded) return
    const { response, ownHeaders, upstream } = this.#proxied
    this.#events.failed(error)
    const [why, problem] = upstreamFailure(error, upstream)
    if (this.#status === 0) this.#end(problem.status, why)
    else this.#end(this.#status, why === 'unreachable' ? 'broken_off' : why)
    writeProblem(response, problem, ownHeaders, this.#form)
  }

  /**
   * Passes informational answers on to clients of HTTP/1.1 (RFC 9110 section 15.2). Node writes only some of them; its
   * answer has the connection by now, and has written nothing.
   */
  #passInformation(status: number, headers: IncomingHttpHeaders): void {
    const { request, response, upstream } = this.#proxied
    // A 101 that was not asked for, or a status below 100, is the end: an error comes next.
    if (request.httpVersionMinor === 0 || response.headersSent || status <= 101) return
    const all: string[] = []
    addAnswerHeaders(all, { ...headers, 'content-length': undefined }, upstream)
    response.socket?.write(`${headText(status, all)}\r\n`, 'latin1')
  }

  #clientGone(): void {
    if (this.#hasEnded) return
    this.#mayDrain()
    this.#end(this.#status || clientGoneStatus, 'client_gone')
    this.#abort(new Error('the client hung up'))
  }

  /** Nothing moved on its connection for a while. Only when something is due from it is that its fault. */
  #clientSilent(): void {
    const { request, response } = this.#proxied
    // Paused, it is us who do not read, because the upstream does not.
    const owesBody = this.#body instanceof ClientBody && !request.complete && !request.isPaused()
    if (owesBody || response.writableNeedDrain) this.#giveUpClient('The body did not come.')
  }

  #giveUpClient(detail: string): void {
    if (this.#hasEnded) return
    const { response, ownHeaders } = this.#proxied
    this.#mayDrain()
    this.#end(this.#status || 408, 'client_gone')
    this.#abort(new Error('the client was too slow'))
    if (response.headersSent) response.destroy()
    else writeProblem(response, badRequest(detail, 408), [...ownHeaders, 'connection', 'close'])
  }

  /** What is with the upstream is read to its end, where its meter says so. */
  #mayDrain(): void {
    const { metered } = this.#proxied
    if (metered !== undefined && this.#controller !== undefined) metered.isDrained = metered.drains
  }

  #abort(reason: Error): void {
    this.#clientFault = reason
    if (this.#proxied.metered?.isDrained !== true) {
      this.#controller?.abort(reason)
      return
    }
    // It may have been paused for a client that read slowly.
    this.#controller?.resume()
    this.#drainTimer = setTimeout(() => this.#controller?.abort(reason), drainMsMax).unref()
  }

  get #form(): RefusalForm | undefined {
    return this.#proxied.metered?.form
  }

  #end(status: number, error: OutcomeError): void {
    this.#hasEnded = true
    const body = this.#body
    const bytesIn = body instanceof ClientBody ? body.bytes : (body?.length ?? 0)
    this.#events.ended({ status, bytesIn, bytesOut: this.#bytesOut, error })
  }
}
