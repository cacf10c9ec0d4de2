import type { IncomingHttpHeaders } from 'node:http'

const loopback = new Set(['127.0.0.1', 'localhost', '[::1]'])

function nameOf(host: string): string | undefined {
  try {
    return new URL(`http://${host}`).hostname
  } catch {
    return undefined
  }
}

/**
 * Why this request is refused as one that a browser sends for a web page; undefined for a program's. A page may send a
 * statement to any port of the machine without asking first; by a name of its own that leads here it could also read
 * the answer.
 */
export function webPage(headers: IncomingHttpHeaders, listensOn: string): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site } = headers
  const name = nameOf(host)
  if (name === undefined || (!loopback.has(name) && name !== listensOn)) {
    return `This server is known as 127.0.0.1 or localhost, not as "${host}"`
  }
  if (origin !== undefined) return `This server answers no web page (Origin: ${origin})`
  if (site !== undefined && site !== 'none') return `This server answers no web page (Sec-Fetch-Site: ${site})`
  return undefined
}
