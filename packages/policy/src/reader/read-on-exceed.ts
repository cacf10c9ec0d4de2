import type { Limit, OnExceed } from '@weir/core/limits/limit.ts'
import { parseDurationMs } from '../policy-values.ts'
import { durationRule, type Fields } from './limit-settings.ts'
import type { Field, PolicyReader } from './policy-reader.ts'

/** Longer, and clients and proxies in between have given up. */
const delayMsMax = 60_000
/** Of the bare word: what people wait for an answer without reloading. */
const delayMsDefault = 5_000
/** Each who waits holds a connection and some kilobytes. */
const queueMax = 10_000
const queueDefault = 100
/** It stands in headers, beside all others. */
const urlLengthMax = 1_024

const words = ['deny', 'drop', 'delay', 'degrade', 'block'] as const
const rule = `one of ${words.join(', ')}, { delay: 5s, queue: 100 } or { challenge: "https://…" }`

/** What a limit does with what it has no room for. `fields` are those of the limit: not everything goes with everything. */
export function readOnExceed(reader: PolicyReader, place: Field, fields: Fields): OnExceed | undefined {
  const isWord = reader.isEmpty(place) || reader.scalar(place) !== undefined
  const onExceed = isWord ? readWord(reader, place) : readMap(reader, place)
  return onExceed !== undefined && fits(reader, place, onExceed, fields) ? onExceed : undefined
}

/** What a subject's own version does: the same as the limit, as far as the version can. In shadow it refuses nothing. */
export function onExceedOfOwn(
  reader: PolicyReader,
  fields: Fields,
  { onExceed }: Limit,
  mode: Limit['mode'],
): OnExceed | undefined {
  if (mode === 'shadow') return { kind: 'deny' }
  const block = fields.get('block')
  if (block === undefined || goesWithBlock(onExceed)) return onExceed
  return reader.problemAtKey(block, `does not go with the limit's \`onExceed: ${onExceed.kind}\``)
}

function readWord(reader: PolicyReader, place: Field): OnExceed | undefined {
  const word = reader.text(place, rule, (text) => words.find((one) => one === text))
  if (word === 'delay') return { kind: word, delayMs: delayMsDefault, queueMax: queueDefault }
  return word === undefined ? undefined : { kind: word }
}

function readMap(reader: PolicyReader, place: Field): OnExceed | undefined {
  const fields = reader.fields(place, '`onExceed`', ['delay', 'queue', 'challenge'], [])
  if (fields === undefined) return undefined
  const [delay, queue, challenge] = ['delay', 'queue', 'challenge'].map((name) => fields.get(name))
  if (challenge !== undefined && (delay !== undefined || queue !== undefined)) {
    return reader.problemAtKey(challenge, 'stands beside `delay` or `queue`; a limit does one of them')
  }
  if (challenge !== undefined) {
    const url = reader.secretText(
      challenge,
      `an http or https URL without a password, of at most ${urlLengthMax} characters`,
      readUrl,
    )
    return url === undefined ? undefined : { kind: 'challenge', url }
  }
  if (delay === undefined) return reader.problemAtKey(place, `needs \`delay\` or \`challenge\`: ${rule}`)
  const delayMs = readDelay(reader, delay)
  const places = queue === undefined ? queueDefault : reader.integer(queue, 1, queueMax)
  return delayMs === undefined || places === undefined ? undefined : { kind: 'delay', delayMs, queueMax: places }
}

function readDelay(reader: PolicyReader, place: Field): number | undefined {
  const ms = reader.text(place, durationRule, parseDurationMs)
  if (ms === undefined || ms <= delayMsMax) return ms
  return reader.problem(place, `must be from 1ms to ${delayMsMax / 1_000}s`)
}

/** As a header has it: in ASCII, whatever was written. */
function readUrl(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const { href, username, password } = new URL(text)
  return username === '' && password === '' && href.length <= urlLengthMax ? href : undefined
}

const goesWithBlock = ({ kind }: Pick<OnExceed, 'kind'>) => kind !== 'delay' && kind !== 'degrade'

function fits(reader: PolicyReader, place: Field, { kind }: OnExceed, fields: Fields): boolean {
  const [mode, block, lease] = ['mode', 'block', 'lease'].map((name) => fields.get(name))
  const wrong = (message: string) => {
    reader.problemAtKey(place, message)
    return false
  }
  if (kind !== 'deny' && mode !== undefined && reader.scalar(mode) === 'shadow') {
    return wrong('a limit with `mode: shadow` refuses nothing; leave it out')
  }
  if (kind === 'block' && block === undefined) return wrong('`block` needs for how long, as `block: 10m` beside it')
  if (goesWithBlock({ kind })) return true
  if (block !== undefined)
    return wrong(`\`${kind}\` stands beside \`block\` (line ${reader.lineOf(block)}), which shuts out`)
  if (lease === undefined) return true
  const why =
    kind === 'delay'
      ? 'a process that holds units would let in whoever is paused'
      : 'leased units are counted beforehand'
  return wrong(`\`${kind}\` stands beside \`lease\` (line ${reader.lineOf(lease)}): ${why}`)
}
