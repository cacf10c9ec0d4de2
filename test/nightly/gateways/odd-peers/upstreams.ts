import type { Odd, SentOdd } from './wire.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const odd = 'X-Odd: 1\r\n'
const made = `${odd}Content-Length: 4\r\n\r\nmade`
const good = ok + made
const chunked = (chunks: string, coding = 'chunked') => `${ok}${odd}Transfer-Encoding: ${coding}\r\n\r\n${chunks}`
const head = (lines: string) => `${ok}${lines}\r\n${made}`

type More = Omit<Odd, 'name' | 'source' | 'bytes'>
const rows: [name: string, source: string, bytes: Odd['bytes'], more?: More][] = [
  ['100 unasked', 'RFC 9110 15.2', `HTTP/1.1 100 Continue\r\n\r\n${good}`],
  ['100 with headers', 'RFC 9110 15.2', `HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n${good}`],
  ['102', 'RFC 2518 10.1', `HTTP/1.1 102 Processing\r\n\r\n${good}`],
  ['103', 'RFC 8297', `HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n${good}`, { show: /link: .*/i }],
  ['103 without Link', 'RFC 8297', `HTTP/1.1 103 Early Hints\r\nX-Hint: b\r\n\r\n${good}`],
  ['104', 'IETF draft resumable upload', `HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /up\r\n\r\n${good}`],
  ['199', 'RFC 9110 15.2', `HTTP/1.1 199 Odd\r\n\r\n${good}`],
  ['three 103', 'mitmproxy #2229', `${'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(3)}${good}`],
  [
    '102, pause, 103, pause, 200',
    'RFC 9110 15.2',
    ['HTTP/1.1 102 P\r\n\r\n', 'HTTP/1.1 103 E\r\nLink: </a>\r\n\r\n', good],
  ],
  ['103 with a length', 'RFC 9112 6.3', `HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n${good}`],
  ['101 unasked', 'RFC 9110 15.2.2', `HTTP/1.1 101 Switching Protocols\r\n\r\n${good}`],
  ['101 to odd unasked', 'RFC 9110 7.8', `HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: odd\r\n\r\n${good}`],
  [
    '426 with Upgrade',
    'haproxy #1997',
    `HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: websocket\r\n${made}`,
  ],
  ['200 with Upgrade', 'RFC 9110 7.8', head('Connection: Upgrade\r\nUpgrade: h2,h2c')],
  ...early(),
  ['line feeds alone', 'llhttp #236', good.replaceAll('\r\n', '\n')],
  ['one line feed alone', 'RFC 9112 2.2', `HTTP/1.1 200 OK\n${made}`],
  ['line feed at the end of the head', 'RFC 9112 2.2', `${ok}${odd}Content-Length: 4\r\n\nmade`],
  ['CRLF before the status line', 'RFC 9112 2.2', `\r\n${good}`],
  ['a space before the status line', 'RFC 9112 4', ` ${good}`],
  ['no reason phrase', 'RFC 9112 4', `HTTP/1.1 200 \r\n${made}`],
  ['no space after the status', 'hyper #1587', `HTTP/1.1 200\r\n${made}`],
  ['two spaces before the status', 'RFC 9112 4', `HTTP/1.1  200 OK\r\n${made}`],
  ['non-ASCII reason phrase', 'RFC 9112 4', `HTTP/1.1 200 D'accord \xe9\r\n${made}`],
  ['http/1.1 in small letters', 'RFC 9112 2.3', `http/1.1 200 OK\r\n${made}`],
  ['HTTP/1.0', 'RFC 9112 2.3', `HTTP/1.0 200 OK\r\n${made}`],
  ['HTTP/1.0 until close', 'haproxy #459', `HTTP/1.0 200 OK\r\n${odd}\r\nmade`, { end: 'end' }],
  [
    'HTTP/1.0 with chunks',
    'RFC 9112 6.1',
    `HTTP/1.0 200 OK\r\n${odd}Transfer-Encoding: chunked\r\n\r\n4\r\nmade\r\n0\r\n\r\n`,
    { end: 'end' },
  ],
  ['HTTP/1.2', 'RFC 9112 2.3', `HTTP/1.2 200 OK\r\n${made}`],
  ['HTTP/2.0', 'RFC 9110 2.5', `HTTP/2.0 200 OK\r\n${made}`],
  ['ICY 200 OK', 'http-parser #105', `ICY 200 OK\r\n${made}`],
  ['body without a head', 'http-parser #105', 'made', { end: 'end' }],
  ['a length with zeros', 'RFC 9112 6.2', `${ok}${odd}Content-Length: 0004\r\n\r\nmade`],
  ['a length with a plus', 'RFC 9112 6.2', `${ok}${odd}Content-Length: +4\r\n\r\nmade`],
  ['a length twice, equal', 'RFC 9112 6.3', `${ok}Content-Length: 4\r\n${made}`],
  ['a length twice, different', 'RFC 9112 6.3', `${ok}Content-Length: 5\r\n${made}`],
  ['the length "4, 4"', 'RFC 9110 8.6', `${ok}${odd}Content-Length: 4, 4\r\n\r\nmade`],
  ['an empty length', 'http-parser #459', `${ok}${odd}Content-Length:\r\n\r\nmade`, { end: 'end' }],
  ['a length and chunks', 'http-parser #289', chunked('4\r\nmade\r\n0\r\n\r\n', 'chunked\r\nContent-Length: 4')],
  ['chunked twice', 'haproxy #2210', chunked('4\r\nmade\r\n0\r\n\r\n', 'chunked\r\nTransfer-Encoding: chunked')],
  ['chunk extension', 'RFC 9112 7.1.1', chunked('4;a=b\r\nmade\r\n0;c\r\n\r\n')],
  ['spaces after the chunk size', 'RFC 9112 7.1.1', chunked('4   \r\nmade\r\n0  \r\n\r\n')],
  ['chunks with line feeds alone', 'RFC 9112 7.1', chunked('4\nmade\n0\n\n')],
  ['chunk size in capitals with zeros', 'RFC 9112 7.1', chunked(`000A\r\nmade made!\r\n0000\r\n\r\n`)],
  [
    'trailers',
    'RFC 9110 6.5',
    chunked('4\r\nmade\r\n0\r\nX-T: b\r\n\r\n', 'chunked\r\nTrailer: X-T'),
    { show: /x-t: .*/i },
  ],
  ['no last chunk', 'RFC 9112 8', chunked('4\r\nmade\r\n'), { end: 'end' }],
  ['gzip, chunked', 'RFC 9112 6.1', chunked('4\r\nmade\r\n0\r\n\r\n', 'gzip, chunked')],
  ['Chunked', 'RFC 9112 7', chunked('4\r\nmade\r\n0\r\n\r\n', 'Chunked')],
  ['identity and a length', 'RFC 2616 3.6', head('Transfer-Encoding: identity')],
  ['identity until close', 'RFC 2616 3.6', chunked('made', 'identity'), { end: 'end' }],
  ['shorter than its length', 'RFC 9112 8', `${ok}${odd}Content-Length: 9\r\n\r\nmade`, { end: 'end' }],
  ['longer than its length', 'RFC 9112 6.3', `${good} more`],
  ['another answer behind it', 'RFC 9112 11.1', good + good.replace('made', 'evil')],
  ['204 with a body', 'RFC 9110 15.3.5', `HTTP/1.1 204 No Content\r\n${made}`],
  ['204 with chunks', 'RFC 9112 6.1', `HTTP/1.1 204 No Content\r\n${odd}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['204 with length 0', 'RFC 9110 8.6', `HTTP/1.1 204 No Content\r\n${odd}Content-Length: 0\r\n\r\n`],
  ['205 with a body', 'RFC 9110 15.3.6', `HTTP/1.1 205 Reset Content\r\n${made}`],
  ['304 with a length', 'RFC 9110 15.4.5', `HTTP/1.1 304 Not Modified\r\n${odd}Content-Length: 4\r\n\r\n`],
  ['304 with a body', 'RFC 9112 6.3', `HTTP/1.1 304 Not Modified\r\n${made}`],
  [
    'HEAD with a length',
    'RFC 9110 9.3.2',
    `${ok}${odd}Content-Length: 4\r\n\r\n`,
    { asked: 'HEAD', show: /content-length: 4/i },
  ],
  ['HEAD with chunks', 'RFC 9112 6.1', chunked(''), { asked: 'HEAD' }],
  ['HEAD with a body', 'RFC 9110 9.3.2', good, { asked: 'HEAD' }],
  ['until close', 'RFC 9112 6.3', `${ok}${odd}\r\nmade`, { end: 'end' }],
  ['Connection: close, and stays open', 'RFC 9112 9.6', head('Connection: close')],
  ['reset in the body', 'RFC 9112 8', `${ok}${odd}Content-Length: 9\r\n\r\nmade`, { end: 'reset' }],
  ['reset in the head', 'RFC 9112 8', `${ok}X-Odd: 1\r\nX-`, { end: 'reset' }],
  ['closed without an answer', 'RFC 9112 9.5', '', { end: 'end' }],
  ['an answer in small writes', 'RFC 9112 2.2', [...good.slice(0, 12), good.slice(12)]],
  ['a header with a space in its name', 'RFC 9112 5.1', head('X A: b')],
  ['a header with a space before its colon', 'measurement-kit #1196', head('Expires : b')],
  ['a header name with odd characters', 'RFC 9110 5.6.2', head("X!#$%&'*+-.^_`|~: b"), { show: /x!#.*/i }],
  ['a header name with a slash', 'RFC 9110 5.6.2', head('X/A: b')],
  ['a header name of UTF-8', 'RFC 9110 5.6.2', head('X-\xc3\xa9: b')],
  ['a folded header', 'RFC 9112 5.2', head('X-A: b\r\n c'), { show: /x-a: .*/i }],
  ['an empty header value', 'hyper #1587', head('X-A:'), { show: /x-a:.*/i }],
  ['an empty header name', 'RFC 9112 5', head(': b')],
  ['a header without a colon', 'RFC 9112 5', head('X-A')],
  ['a header of 16 kB', 'RFC 9110 5.4', head(`X-A: ${'a'.repeat(16_000)}`)],
  ['a header of 40 kB', 'RFC 9110 5.4', head(`X-A: ${'a'.repeat(40_000)}`)],
  [
    '150 headers',
    'RFC 9110 5.4',
    head(Array.from({ length: 150 }, (_, at) => `X-${at}: b`).join('\r\n')),
    { show: /x-149: b/i },
  ],
  [
    'five Set-Cookie',
    'RFC 6265 3',
    head('Set-Cookie: a=b, c\r\n'.repeat(5).trim()),
    { show: /(?:set-cookie: .*\s+(?:date: .*\s+)?){5}/i },
  ],
  ['a value of latin-1', 'RFC 9110 5.5', head('X-A: \xe9'), { show: /x-a: \xe9\r/i }],
  ['a value of UTF-8', 'RFC 9110 5.5', head('X-A: \xc3\xa9'), { show: /x-a: \xc3\xa9\r/i }],
  ['a value with a tab', 'RFC 9110 5.5', head('X-A: b\tc'), { show: /x-a: b\tc/i }],
  ['a value with a NUL', 'RFC 9110 5.5', head('X-A: b\0c')],
  ['a value with \\x01', 'RFC 9110 5.5', head('X-A: b\x01c')],
  ['a value with a bare CR', 'RFC 9112 2.2', head('X-A: b\rc')],
  ...['099', '299', '600', '999', '1000', '20', '2x0', '-20'].map((status): (typeof rows)[number] => [
    `status ${status}`,
    'RFC 9110 15',
    `HTTP/1.1 ${status} Odd\r\n${made}`,
  ]),
  [
    'Location that is no address',
    'RFC 9110 10.2.2',
    `HTTP/1.1 302 Found\r\nLocation: ht tp://[:x\r\n${made}`,
    { show: /location: .*/i },
  ],
  [
    'Location with UTF-8',
    'RFC 9110 10.2.2',
    `HTTP/1.1 302 Found\r\nLocation: /\xc3\xa9\r\n${made}`,
    { show: /location: .*/i },
  ],
  ['two Location', 'RFC 9110 5.3', `HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\n${made}`],
  ['two Content-Type', 'RFC 9110 5.3', head('Content-Type: a/b\r\nContent-Type: c/d')],
]

/** Answers before the body of the request has come. */
function early(): typeof rows {
  const post = (path: string) => `${path}Content-Length: 10\r\n\r\nhello`
  const large = 'Content-Length: 4000000\r\n\r\n'
  const answer = (status: string, more = '') => `HTTP/1.1 ${status}\r\n${more}${made}`
  const close = 'Connection: close\r\n'
  return [
    ['413 before the body', 'RFC 9110 15.5.14', answer('413 Large'), { asked: [post(''), 'world'] }],
    [
      '413 before the body, closed',
      'node #54366',
      answer('413 Large', close),
      { asked: [post(''), 'world'], end: 'end' },
    ],
    [
      '401 while a large body comes, closed',
      'node #54366',
      answer('401 No', close),
      { asked: [large, 'b'.repeat(4_000_000)], end: 'end' },
    ],
    [
      '401 while a large body comes, reset',
      'p5-http-tiny #121',
      answer('401 No', close),
      { asked: [large, 'b'.repeat(4_000_000)], end: 'reset' },
    ],
    ['200 before the body', 'RFC 9112 9.3', answer('200 OK'), { asked: [post(''), 'world'] }],
    ['200 before the body, which never ends', 'http.rb #473', answer('200 OK'), { asked: post('') }],
    [
      '417 to Expect',
      'RFC 9110 15.5.18',
      answer('417 No'),
      { asked: ['Expect: 100-continue\r\nContent-Length: 5\r\n\r\n', 'hello'] },
    ],
    [
      '100 to Expect',
      'RFC 9110 10.1.1',
      ['HTTP/1.1 100 Continue\r\n\r\n', answer('200 OK')],
      { asked: ['Expect: 100-continue\r\nContent-Length: 5\r\n\r\n', 'hello'] },
    ],
  ]
}

/** Odd upstreams: row N answers `/u/N`. */
export const oddUpstreams: readonly Odd[] = rows.map(([name, source, bytes, more]) => ({
  name,
  source,
  bytes,
  ...more,
}))

/** The request that row N is asked by. */
export function askOf({ asked = 'GET', show }: Odd, at: number): SentOdd {
  const [first = '', ...rest] = [asked].flat()
  const method = /^[A-Z]+$/.test(first) ? first : 'POST'
  const start = `${method} /u/${at} HTTP/1.1\r\nHost: api.test\r\n${method === 'POST' ? first : '\r\n'}`
  return { bytes: [start, ...rest], ...(show === undefined ? {} : { show }) }
}
