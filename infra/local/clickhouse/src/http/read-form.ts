import type { IncomingMessage } from 'node:http'
import { notImplemented, serverException } from '../engine/exception.ts'
import { type Body, readHead } from './request-body.ts'

/** A form holds a statement and its parameters, for clients whose URL would be too long. */
const formBytesMax = 16 * 1024 ** 2

export const isForm = (request: IncomingMessage): boolean =>
  (request.headers['content-type'] ?? '').startsWith('multipart/form-data')

/** Adds a form's fields to the URL's. Files would be external tables, which are refused. */
export async function readForm(request: IncomingMessage, body: Body, parameters: URLSearchParams): Promise<void> {
  const { head, ended } = await readHead(body, formBytesMax)
  if (!ended) throw serverException(229, `A form may have ${formBytesMax} bytes`)
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  const form = await new Response(head, { headers }).formData().catch((error: unknown) => {
    throw serverException(36, `Cannot read the multipart form: ${error instanceof Error ? error.message : error}`)
  })
  for (const [name, value] of form) {
    if (typeof value !== 'string') throw notImplemented('external data (a table sent with the query)')
    parameters.append(name, value)
  }
}
