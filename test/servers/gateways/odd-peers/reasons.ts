/**
 * Rows that Weir need not serve as others do, by what docs/proxy.md says of them, word for word.
 */
export const clientReasons: Readonly<Record<string, readonly string[]>> = {
  'A path is brought into one form': [
    ...['%00 in the path', '%2F in the path', 'a broken escape in the path', 'a fragment', '* of OPTIONS'],
    '| { } " ^ ` < > in the path',
  ],
  'Framing that two servers could read differently': [
    ...['a length and chunks', 'a length twice, equal', 'the length "5, 5"', 'chunks with line feeds alone'],
    ...['line feeds alone', 'a folded header', 'two equal Hosts', 'no Host', 'absolute form without Host'],
    ...['spaces after the chunk size', 'HTTP/1.0 with chunks', 'tabs in the request line', 'a header without a colon'],
    ...['a space at the end of the request line', 'gzip, chunked', 'identity'],
  ],
  'A method that Node does not know': [
    ...['a method in small letters', 'an unknown method', 'an unknown method with a hyphen', 'method BREW'],
  ],
  'HTTP/1.2': ['HTTP/1.2'],
  'Bytes beyond ASCII in the target': ['UTF-8 in the path', 'UTF-8 in the query'],
  'other characters than letters, digits': ['Host with !', 'Host of UTF-8', 'Host with a path'],
  'An absolute form with another scheme than `http` or `https`, or with a user': [
    ...['absolute form of ftp', 'absolute form with a user'],
  ],
  'A name with an underscore': ['a name with an underscore'],
  '`CONNECT`': ['CONNECT'],
  'A client that ends its side': ['a client that ends its side', 'a client that ends its side after a body'],
}

/** The same of odd upstreams. */
export const upstreamReasons: Readonly<Record<string, readonly string[]>> = {
  'A 100 is dropped': ['100 unasked', '100 with headers', '100 to Expect'],
  'A 101 that was not asked for': ['101 unasked', '101 to odd unasked'],
  'A status line of another form': [
    ...['HTTP/1.2', 'ICY 200 OK', 'two spaces before the status', 'a space before the status line'],
    ...['http/1.1 in small letters', 'status 2x0', 'status 1000'],
  ],
  'Line feeds without a carriage return': [
    ...['line feeds alone', 'one line feed alone', 'line feed at the end of the head', 'chunks with line feeds alone'],
  ],
  'Header names that are no tokens, folded headers, control characters': [
    ...['a header name of UTF-8', 'a header name with a slash', 'a header with a space in its name', 'a folded header'],
    ...['a header with a space before its colon', 'an empty header name', 'a header without a colon'],
    ...['a value with a NUL', 'a value with \\x01', 'a value with a bare CR'],
  ],
  'A length twice, empty, signed, or along with chunks': [
    ...['a length twice, equal', 'a length twice, different', 'the length "4, 4"', 'an empty length'],
    ...['a length with a plus', 'a length and chunks', 'identity and a length'],
  ],
  'Spaces behind the size of a chunk': ['spaces after the chunk size'],
}
