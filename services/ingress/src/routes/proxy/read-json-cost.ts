import type { Route, Subject } from '@weir/policy/policy.ts'
import type { Problem } from '@weir/runtime/problem.ts'
import { type FairPlaces, sharerOf } from '../../fair-places.ts'
import { costBodyBytesMax, encodedBody, jsonCost, longBody } from '../../http/json-cost.ts'
import { readWhole } from './client-body.ts'
import { bodiesBusy } from './problems.ts'
import type { IncomingRequest } from './proxied-request.ts'

/**
 * Reads the cost that a JSON body says, with the very bytes that were read: those are sent on. `reading` bounds how
 * many bodies are read at the same time.
 */
export async function readJsonCost(
  { request, response, mayContinue }: IncomingRequest,
  { costFrom }: Route,
  { reading, subject }: { readonly reading: FairPlaces; readonly subject: Subject },
): Promise<{ readonly cost: number | Problem; readonly body: Buffer | undefined }> {
  const sharer = sharerOf(subject.id)
  // No event would free the place of a client that has left.
  if (request.socket.destroyed || !reading.hasFor(sharer)) return { cost: bodiesBusy, body: undefined }
  let isReading = true
  const leave = () => {
    if (isReading) reading.giveBack(sharer)
    isReading = false
  }
  reading.take(sharer)
  response.once('close', leave)
  mayContinue()
  const encoding = request.headers['content-encoding'] ?? 'identity'
  const isPlain = encoding.toLowerCase() === 'identity'
  const body = isPlain ? await readWhole(request, costBodyBytesMax) : undefined
  leave()
  if (body === undefined) return { cost: isPlain ? longBody : encodedBody, body }
  return { cost: jsonCost(body, costFrom?.kind === 'json' ? costFrom.pointer : ''), body }
}
