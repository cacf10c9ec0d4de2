import type { Limit, OnExceed } from '@weir/core/limits/limit.ts'
import type { Fields, PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** The delay of the bare word: people wait this long for an answer without reloading. */
const delayMsDefault = 5_000
/** Each request that waits holds a connection and some kilobytes. */
const queueMax = 10_000
const queueDefault = 100
/** The URL is sent in a header, with all others. */
const urlLengthMax = 1_024

const words = ['deny', 'drop', 'delay', 'degrade', 'block'] as const
const rule = `one of ${words.join(', ')}, { delay: 5s, queue: 100 } or { challenge: "https://…" }`

const delayMembers = {
  // Longer, and clients and proxies in between have given up.
  delay: t.required('How long a request waits for capacity: 1ms to 60s.', t.duration('1ms', '60s')),
  queue: t.withDefault('The most requests that wait at a time, per process.', t.integer(1, queueMax), queueDefault),
}
const urlRule = `an http or https URL without a password, of at most ${urlLengthMax} characters`
const challengeMembers = {
  challenge: t.required('Page for users.', t.secretText(urlRule, readUrl, { pattern: '^[hH][tT][tT][pP][sS]?://' })),
}

/** What a limit does with a request that it has no capacity for. */
export const onExceed: t.ValueType<OnExceed> = {
  schema: { oneOf: [{ enum: words }, t.objectSchema(delayMembers), t.objectSchema(challengeMembers)] },
  read(reader, at) {
    const isWord = reader.isEmpty(at) || reader.scalar(at) !== undefined
    if (!isWord) return readMap(reader, at)
    const word = reader.text(at, rule, (text) => words.find((one) => one === text))
    if (word === 'delay') return { kind: word, delayMs: delayMsDefault, queueMax: queueDefault }
    return word === undefined ? undefined : { kind: word }
  },
}

function readMap(reader: PolicyReader, at: SourcePosition): OnExceed | undefined {
  const fields = reader.fields(at, '`onExceed`', ['delay', 'queue', 'challenge'])
  if (fields === undefined) return undefined
  const challengeAt = fields.get('challenge')
  if (challengeAt !== undefined && (fields.has('delay') || fields.has('queue'))) {
    return reader.problemAtKey(challengeAt, 'conflicts with `delay` and `queue`; a limit supports only one of them')
  }
  if (challengeAt !== undefined) {
    const { challenge: url } = t.readMembers(reader, fields, challengeMembers)
    return url === undefined ? undefined : { kind: 'challenge', url }
  }
  if (!fields.has('delay')) return reader.problemAtKey(at, `needs \`delay\` or \`challenge\`: ${rule}`)
  const { delay, queue } = t.readMembers(reader, fields, delayMembers)
  return delay === undefined || queue === undefined ? undefined : { kind: 'delay', delayMs: delay, queueMax: queue }
}

/** As a header has it: in ASCII, whatever was written. */
function readUrl(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const { href, username, password } = new URL(text)
  return username === '' && password === '' && href.length <= urlLengthMax ? href : undefined
}

const goesWithBlock = ({ kind }: Pick<OnExceed, 'kind'>) => kind !== 'delay' && kind !== 'degrade'

/** Adds a problem where `onExceed` does not go with the other keys of its limit. */
export function checkOnExceed(reader: PolicyReader, fields: Fields, { kind }: OnExceed): void {
  const [at, mode, block, lease] = ['onExceed', 'mode', 'block', 'lease'].map((name) => fields.get(name))
  if (at === undefined) return
  if (kind !== 'deny' && mode !== undefined && reader.scalar(mode) === 'shadow') {
    reader.problemAtKey(at, 'a limit with `mode: shadow` never refuses; remove it')
  } else if (kind === 'block' && block === undefined) {
    reader.problemAtKey(at, '`block` needs a duration, such as `block: 10m` in the same limit')
  } else if (goesWithBlock({ kind })) return
  else if (block !== undefined) {
    reader.problemAtKey(at, `\`${kind}\` conflicts with \`block\`${reader.lineNote(block)}, which refuses all requests`)
  } else if (lease !== undefined) {
    const why =
      kind === 'delay'
        ? 'a process with leased units would admit a paused subject'
        : 'leased units are counted in advance'
    reader.problemAtKey(at, `\`${kind}\` conflicts with \`lease\`${reader.lineNote(lease)}: ${why}`)
  }
}

/** What a subject's own version does: the same as the limit, as far as the version can. In shadow it denies nothing. */
export function onExceedOfOwn(
  reader: PolicyReader,
  fields: Fields,
  limit: Limit,
  mode: Limit['mode'],
): OnExceed | undefined {
  if (mode === 'shadow') return { kind: 'deny' }
  const block = fields.get('block')
  if (block === undefined || goesWithBlock(limit.onExceed)) return limit.onExceed
  return reader.problemAtKey(block, `conflicts with the limit's \`onExceed: ${limit.onExceed.kind}\``)
}
