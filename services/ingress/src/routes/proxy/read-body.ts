import type { IncomingMessage } from 'node:http'
import { type FairSlots, sharerOf } from '@weir/decide/fair-slots.ts'
import type { Route, Subject } from '@weir/policy/policy.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import { type BodyValues, countedBodyProblems, mayBeJson, valuesOfBody } from '../../http/body-scopes.ts'
import { parseJson, readBodyBytesMax } from '../../http/json-body.ts'
import { costBodyProblems, jsonCost } from '../../http/json-cost.ts'
import { bodiesBusy } from './answers.ts'
import { hasBody, readWhole } from './client-body.ts'
import type { IncomingRequest } from './proxied-request.ts'

/** What of a body was read before the decision. */
interface ReadBody {
  /** What is sent on. */
  readonly bytes: Buffer | undefined
  /** Of a route whose requests say in their bodies what they cost; undefined with the problem of one that does not. */
  readonly cost: number | undefined
  readonly problem: Problem | undefined
  /** What limits count by. */
  readonly values: BodyValues | undefined
}

/** Of a body that the decision does not ask for. */
export const unread: ReadBody = { bytes: undefined, cost: undefined, problem: undefined, values: undefined }

/** The pointers for which the request's body is to be read; undefined where there is no JSON. */
export const countedPointers = (pointers: readonly string[] | undefined, request: IncomingMessage) =>
  pointers !== undefined && hasBody(request) && mayBeJson(request.headers['content-type']) ? pointers : undefined

/** Reads a body whole, or says why not. `reading` bounds how many are read at the same time. */
export async function readBody(
  { request, response, mayContinue }: IncomingRequest,
  asked: {
    readonly reading: FairSlots
    readonly subject: Subject
    readonly route: Route
    readonly pointers: readonly string[] | undefined
  },
): Promise<ReadBody | Problem> {
  const { reading, route, pointers } = asked
  const costAt = route.costFrom?.kind === 'json' ? route.costFrom.pointer : undefined
  const problems = costAt === undefined ? countedBodyProblems : costBodyProblems
  const sharer = sharerOf(asked.subject.id)
  // No event would free the slot of a client that has left.
  if (request.socket.destroyed || !reading.hasFor(sharer)) return bodiesBusy
  let isReading = true
  const leave = () => {
    if (isReading) reading.release(sharer)
    isReading = false
  }
  reading.take(sharer)
  response.once('close', leave)
  mayContinue()
  const encoding = request.headers['content-encoding'] ?? 'identity'
  const isPlain = encoding.toLowerCase() === 'identity'
  const bytes = isPlain ? await readWhole(request, readBodyBytesMax) : undefined
  leave()
  if (bytes === undefined) return isPlain ? problems.long : problems.encoded
  const json = parseJson(bytes)
  const cost = costAt === undefined ? undefined : jsonCost(json, costAt)
  return {
    bytes,
    ...(typeof cost === 'object' ? { cost: undefined, problem: cost } : { cost, problem: undefined }),
    values: pointers === undefined ? undefined : valuesOfBody(json, pointers),
  }
}
