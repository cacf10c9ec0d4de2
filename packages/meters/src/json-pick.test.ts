import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Fact, JsonPick } from './json-pick.ts'
import { preparePatterns } from './patterns.ts'

/** What is found, in order, with the pattern as it was written; undefined for what is no JSON. */
function pick(text: string, pointers: readonly string[], cuts: readonly number[] = []) {
  const found: [string, Fact['kind'], unknown][] = []
  const reader = new JsonPick(preparePatterns(pointers), (at, fact) => {
    found.push([pointers[at] ?? '', fact.kind, fact.kind === 'list' ? fact.size : fact.value])
  })
  const bytes = Buffer.from(text)
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  let from = 0
  for (const end of ends) {
    reader.write(bytes.subarray(from, end))
    from = end
  }
  return { found: reader.end() ? found : undefined, ambiguous: pointers.filter((_, at) => reader.isAmbiguous[at]) }
}

test('finds what pointers point to, and skips the rest', () => {
  const text = '{"model":"m","max_tokens":12,"n":[1,{"n":2}],"stream":true,"stop":null,"x":{"max_tokens":3}}'
  expect(pick(text, ['/max_tokens', '/model', '/stream', '/stop', '/n', '/n/1/n', '/absent', '/x']).found).toEqual([
    ['/model', 'text', 'm'],
    ['/max_tokens', 'number', 12],
    ['/n/1/n', 'number', 2],
    ['/n', 'list', 2],
    ['/stream', 'boolean', true],
    ['/stop', 'null', undefined],
    ['/x', 'object', undefined],
  ])
})

test('finds each item that a star stands for', () => {
  const text = '{"messages":[{"content":[{"type":"text"},{"type":"image_url"}]},{"content":"hi"},{"content":[]}]}'
  expect(pick(text, ['/messages/*/content/*/type', '/messages/*/content']).found).toEqual([
    ['/messages/*/content/*/type', 'text', 'text'],
    ['/messages/*/content/*/type', 'text', 'image_url'],
    ['/messages/*/content', 'list', 2],
    ['/messages/*/content', 'text', 'hi'],
    ['/messages/*/content', 'list', 0],
  ])
})

test('names that readers may take for each other make a pattern ambiguous', () => {
  expect(pick('{"n":1,"n":2}', ['/n']).ambiguous).toEqual(['/n'])
  expect(pick('{"n":1,"N":2}', ['/n']).ambiguous).toEqual(['/n'])
  expect(pick('{"a":{"n":1},"\\u0061":{}}', ['/a/n', '/b']).ambiguous).toEqual(['/a/n'])
  expect(pick('{"n":{"n":2},"x":{"n":1,"n":1}}', ['/n', '/n/n']).ambiguous).toEqual([])
  expect(pick('[{"n":1},{"n":2}]', ['/*/n', '/0/n']).ambiguous).toEqual([])
})

test('escapes, quotes and letters beyond ASCII are read as every reader does', () => {
  const text = '{"a\\"b":"x\\\\","m\\u006fdel":"\\ud83d\\ude00 ü","t":"\\\\\\""}'
  for (const cut of Array(text.length).keys()) {
    expect(pick(text, ['/a"b', '/model', '/t'], [cut]).found).toEqual([
      ['/a"b', 'text', 'x\\'],
      ['/model', 'text', '😀 ü'],
      ['/t', 'text', '\\"'],
    ])
  }
})

test('what is no JSON is found out', () => {
  const texts = ['', '{', '{"a":1', '{"a" 1}', '{"a":1,}', '[1 2]', '[1,]', '{"a":1}}', '[}', 'nul', '"x', '{a:1}']
  for (const text of [...texts, '{"a":"\\q"}', '{"a":1} x', '\ufeff{}', '['.repeat(129) + ']'.repeat(129)]) {
    expect([text, pick(text, ['/a']).found]).toEqual([text, undefined])
  }
  expect(pick(`${'['.repeat(128)}${']'.repeat(128)}`, ['/a']).found).toEqual([])
})

test('numbers that are none have no value, and of long texts only the beginning is kept', () => {
  expect(pick('{"a":01,"b":1e3,"c":-0.5}', ['/a', '/b', '/c']).found).toEqual([
    ['/a', 'number', Number.NaN],
    ['/b', 'number', 1000],
    ['/c', 'number', -0.5],
  ])
  const long = `https:\\/\\/${'x'.repeat(2_000)}`
  for (const cut of [3, 9, 900, 1_030]) {
    expect(pick(`{"a":"${long}","b":"${'x'.repeat(1_025)}"}`, ['/a', '/b'], [cut]).found).toEqual([
      ['/a', 'text', 'https:'],
      ['/b', 'text', 'x'.repeat(1_024)],
    ])
  }
})

const memberNames = fc.constantFrom('a', 'b', 'model', 'x y', 'é', '"', '\\', '0')

/** What a plain reader finds at a pointer, as a fact. */
function factAt(value: unknown, pointer: string): unknown[] | undefined {
  const found = pointer
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (inner, step) =>
        Object(inner) === inner && Object.hasOwn(Object(inner), step) ? Reflect.get(Object(inner), step) : undefined,
      value,
    )
  if (found === undefined) return undefined
  if (Array.isArray(found)) return ['list', found.length]
  if (typeof found === 'object' && found !== null) return ['object', undefined]
  if (found === null) return ['null', undefined]
  return [typeof found === 'string' ? 'text' : typeof found, found]
}

test('finds in any text, in any pieces, what was written', () => {
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.string({ unit: 'grapheme' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(memberNames, tie('value'), { maxKeys: 4 }),
    ),
  }))
  const pointer = fc.array(fc.oneof(memberNames, fc.constantFrom('1', '2')), { minLength: 1, maxLength: 4 })
  const pointers = fc.uniqueArray(
    pointer.map((steps) => `/${steps.join('/')}`),
    { minLength: 1, maxLength: 6 },
  )
  fc.assert(
    fc.property(
      value,
      pointers,
      fc.array(fc.nat(), { maxLength: 6 }),
      fc.constantFrom(undefined, 1),
      (json, asked, cuts, indent) => {
        const { found } = pick(JSON.stringify(json, undefined, indent), asked, cuts)
        const expected = asked.flatMap((one) => {
          const fact = factAt(json, one)
          return fact === undefined ? [] : [[one, ...fact]]
        })
        expect(new Map(found?.map(([at, ...fact]) => [at, fact]))).toEqual(
          new Map(expected.map(([at, ...fact]) => [at, fact])),
        )
      },
    ),
    { numRuns: 2_000 },
  )
})
