import type { IncomingMessage } from 'node:http'
import { type FairSlots, sharerOf } from '@weir/decide/fair-slots.ts'
import { type RequestMeasure, RequestMeter } from '@weir/meters/measure-request.ts'
import type { MeterReader } from '@weir/meters/meter-reader.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import { type BodyValues, countedBodyProblems, mayBeJson, valuesOfBody } from '../../http/body-scopes.ts'
import { parseJson, readBodyBytesMax } from '../../http/json-body.ts'
import { costBodyProblems, jsonCost } from '../../http/json-cost.ts'
import { costUnreadable } from '../../http/read-cost.ts'
import type { PolicyView } from '../../policy-view.ts'
import { bodiesBusy, bodyLate } from './answers.ts'
import type { BodyMemory } from './body-memory.ts'
import { hasBody, readWhole } from './client-body.ts'
import { headOf, measured, scanInto } from './measure-body.ts'
import type { IncomingRequest } from './proxied-request.ts'
import { askingForUsage } from './usage-event.ts'

/** What of a body was read before the decision. */
export interface ReadBody {
  /** What is sent on. */
  readonly bytes: Buffer | undefined
  /** Of a route whose requests say in their bodies what they cost; undefined with the problem of one that does not. */
  readonly cost: number | undefined
  readonly problem: Problem | undefined
  /** What limits count by. */
  readonly values: BodyValues | undefined
  /** What a metered request may use at most; undefined with the problem of one that does not say. */
  readonly measure: RequestMeasure | undefined
}

/** Of a body that the decision does not ask for. */
export const unread: ReadBody = {
  bytes: undefined,
  cost: undefined,
  problem: undefined,
  values: undefined,
  measure: undefined,
}

/** The pointers for which the request's body is to be read; undefined where there is no JSON. */
export const countedPointers = (pointers: readonly string[] | undefined, request: IncomingMessage) =>
  pointers !== undefined && hasBody(request) && mayBeJson(request.headers['content-type']) ? pointers : undefined

/** What a body is read for. */
export interface BodyAsked {
  readonly subject: Subject
  readonly route: Route
  readonly pointers: readonly string[] | undefined
  readonly reader: MeterReader | undefined
  /** Its rate cards know bounds of models. */
  readonly view: Pick<PolicyView, 'rates'>
}

/** The longest body that a meter reads. */
const meteredBytesMax = 10 * 1_048_576
const metered = 'This route is metered by the request body'
const meteredProblems = {
  encoded: costUnreadable(`${metered}, which must not have a Content-Encoding.`, 415),
  long: costUnreadable(`${metered}, which must not exceed ${meteredBytesMax} bytes.`, 413),
}

function problemsOf({ route, pointers, reader }: BodyAsked) {
  if (route.costFrom?.kind === 'json') return costBodyProblems
  return pointers === undefined && reader !== undefined ? meteredProblems : countedBodyProblems
}

/**
 * Reads a body whole, or says why not. `reading` bounds how many are read at the same time, `memory` their bytes, and
 * `msMax` how long each takes.
 */
export async function readBody(
  incoming: IncomingRequest,
  asked: BodyAsked,
  { reading, memory, msMax }: { readonly reading: FairSlots; readonly memory: BodyMemory; readonly msMax: number },
): Promise<ReadBody | Problem> {
  const { request, response, mayContinue } = incoming
  const { route, pointers, reader } = asked
  const problems = problemsOf(asked)
  const sharer = sharerOf(asked.subject.id)
  // No event would free the slot of a client that has left.
  if (request.socket.destroyed || !reading.hasFor(sharer)) return bodiesBusy
  let isReading = true
  const leave = () => {
    if (isReading) reading.release(sharer)
    isReading = false
    clearTimeout(timer)
  }
  const late = Promise.withResolvers<'late'>()
  const timer = setTimeout(late.resolve, msMax, 'late').unref()
  reading.take(sharer)
  response.once('close', leave)
  mayContinue()
  const encoding = request.headers['content-encoding'] ?? 'identity'
  const isPlain = encoding.toLowerCase() === 'identity'
  const measuring = reader && new RequestMeter(reader, headOf(request), (model) => asked.view.rates?.boundsOf(model))
  const bytesMax = problems === meteredProblems ? meteredBytesMax : readBodyBytesMax
  const scanned = measuring && scanInto(measuring, memory.of(response, sharer))
  const bytes = isPlain ? await Promise.race([readWhole(request, bytesMax, scanned?.scan), late.promise]) : undefined
  leave()
  if (bytes === 'late') return bodyLate
  if (scanned?.isFull() === true) return bodiesBusy
  if (bytes === undefined) return isPlain ? problems.long : problems.encoded
  const costs = whatCosts(asked, bytes)
  // One that is refused for its cost must hold nothing.
  if (costs.problem !== undefined) return { ...costs, measure: undefined }
  const found = measured(measuring)
  const sent = found.measure?.asksForUsage === true ? askingForUsage(bytes) : bytes
  return { ...costs, ...found, bytes: hasBody(request) ? sent : undefined }
}

/** What of its body counts, and what it costs by it. */
function whatCosts({ route, pointers }: BodyAsked, bytes: Buffer): Omit<ReadBody, 'measure'> {
  const costAt = route.costFrom?.kind === 'json' ? route.costFrom.pointer : undefined
  const json = costAt === undefined && pointers === undefined ? undefined : parseJson(bytes)
  const cost = costAt === undefined ? undefined : jsonCost(json, costAt)
  return {
    bytes,
    ...(typeof cost === 'object' ? { cost: undefined, problem: cost } : { cost, problem: undefined }),
    values: pointers === undefined ? undefined : valuesOfBody(json, pointers),
  }
}
