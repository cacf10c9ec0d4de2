import type { IncomingMessage } from 'node:http'
import type { Problem } from '@weir/runtime/problem.ts'
import { costBodyBytesMax, encodedBody, jsonCost, longBody } from '../../http/json-cost.ts'
import { readWhole } from './client-body.ts'

/** A request's cost as its body says it, with the very bytes that were read: those are sent on. */
export async function readJsonCost(
  request: IncomingMessage,
  pointer: string,
): Promise<{ readonly cost: number | Problem; readonly body: Buffer | undefined }> {
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') return { cost: encodedBody, body: undefined }
  const body = await readWhole(request, costBodyBytesMax)
  if (body === undefined) return { cost: longBody, body: undefined }
  return { cost: jsonCost(body, pointer), body }
}
