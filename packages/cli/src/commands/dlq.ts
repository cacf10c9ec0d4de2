import {
  type DeadLetter,
  type DeadLetterTopic,
  deadLetterTopics,
  describePartition,
  type MeteredTopic,
  meteredTopics,
  readDeadLetters,
} from '@weir/audit/dead-letters.ts'
import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { isFields, parseJson } from '@weir/contracts/fields.ts'
import { topics } from '@weir/contracts/topics.ts'
import { WeirError } from '@weir/core/errors.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import { PartitionAdmin } from '@weir/kafka/partition-admin.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { findKafka, withClickhouse } from '../open-servers.ts'
import { readInputFile } from '../read-input-file.ts'
import { textTable } from '../text-table.ts'

interface DlqOptions extends CommonOptions {
  readonly topic?: string
}

/** Names one dead letter by where its record stood. */
interface LetterOptions extends DlqOptions {
  readonly partition: number
  readonly offset: number
}

/** Letters that a person reads; the rest is only counted. */
const listedMax = 1_000
/** Metering inserts within a second or two; a longer wait has a reason that a person should look for. */
const meteredDeadlineMs = 30_000

function topicsOf<T extends DeadLetterTopic>({ topic }: DlqOptions, known: readonly T[]): readonly T[] {
  if (topic === undefined) return known
  const found = known.filter((one) => one.topic === topic || one.deadLetters === topic)
  if (found.length > 0) return found
  const names = known.map((one) => one.topic).join(', ')
  throw new WeirError('COMMAND_INVALID', `--topic takes one of ${names}, not ${JSON.stringify(topic)}`)
}

/** Lists the records that could not be read, with the reasons. */
export async function listDeadLetters(options: DlqOptions, context: CommandContext): Promise<void> {
  const kafka = findKafka(context, options.data)
  const listed: { topic: string; partition: number; offset: number; bytes: number; reason: string }[] = []
  let count = 0
  for (const { deadLetters } of topicsOf(options, deadLetterTopics)) {
    for await (const { topic, partition, offset, value, reason } of readDeadLetters(kafka, deadLetters)) {
      count += 1
      context.progress.tell(`${count} read`)
      if (listed.length < listedMax) listed.push({ topic, partition, offset, bytes: value?.length ?? 0, reason })
    }
  }
  if (options.json) return context.print(JSON.stringify({ count, letters: listed }))
  context.report(count === 0 ? 'no dead letters' : `${count} dead ${count === 1 ? 'letter' : 'letters'}`)
  if (count === 0) return
  const rows = listed.map((one) => Object.values(one).map(String))
  context.print(textTable([['TOPIC', 'PARTITION', 'OFFSET', 'BYTES', 'WHY'], ...rows]))
  if (count > listed.length) context.report(`the first ${listed.length} are listed`)
}

async function find<T extends DeadLetterTopic>(options: LetterOptions, known: readonly T[], context: CommandContext) {
  const [of] = topicsOf(options, known)
  if (of === undefined) throw new Error('no topic has dead letters')
  const { partition, offset } = options
  for await (const letter of readDeadLetters(findKafka(context, options.data), of.deadLetters)) {
    if (letter.partition === partition && letter.offset === offset) return { of, letter }
  }
  const what = `There is no dead letter of ${of.topic}, partition ${partition}, offset ${offset}`
  throw new WeirError('COMMAND_INVALID', `${what}; weir dlq ls lists them`)
}

/** Prints the bytes of a dead letter. */
export async function showDeadLetter(options: LetterOptions, context: CommandContext): Promise<void> {
  const { letter } = await find(options, deadLetterTopics, context)
  const text = letter.value?.toString('utf8') ?? ''
  context.report(letter.reason)
  if (options.json) context.print(JSON.stringify({ ...letter, value: letter.value === null ? null : text }))
  // As it came to a file or a program; to people without what their terminal would obey.
  else context.print(text, process.stdout.isTTY ? undefined : 'exactly')
}

/** The namespace of the ids of replays; it never changes. */
const namespace = '6f6b0b0e-6d0e-4c55-9a1e-5d1a4f1f7c52'

const refused = (why: string) => {
  const how = 'Save the text that weir dlq show prints, correct it, and pass the file with --value FILE'
  return new WeirError('REPLAY_REFUSED', `It is still no record: ${why}. ${how}`)
}

/**
 * Makes the record that replays a dead letter: the letter, or the corrected text instead, with an id, a journal and a
 * sequence number that follow from the letter's topic, partition and offset. So every replay of one letter is the same
 * record, and counts once. An outcome keeps its id, by which it belongs to a decision.
 *
 * @throws REPLAY_REFUSED if the text is still no record.
 */
export function planReplay(letter: DeadLetter, topicId: string, corrected: string | undefined) {
  const { topic, partition, offset } = letter
  const fields = parseJson(corrected ?? letter.value?.toString('utf8') ?? '')
  if (!isFields(fields)) throw refused('it is no JSON object')
  const place = `${topicId}:${partition}:${offset}`
  // A journal of the record's own, in which it has number 0.
  const journal = uuidv5(namespace, `journal:${place}`)
  const { journal: _, seq: __, ...rest } = fields
  const id = topic === topics.decisions ? uuidv5(namespace, place) : rest.id
  const record = Buffer.from(JSON.stringify({ ...rest, id, journal, seq: 0 }))
  if (topic === topics.decisions) {
    const parsed = parseDecision(record)
    if (parsed.kind === 'unreadable') throw refused(parsed.reason)
  }
  const { subject } = rest
  if (typeof subject !== 'string') throw refused('field subject is missing or wrong')
  return { key: subject, value: record.toString('utf8'), journal }
}

/** Sends it, unless it was metered before, and waits until it is. */
async function send(
  { key, value, journal }: ReturnType<typeof planReplay>,
  { topic, table }: MeteredTopic,
  data: string,
  context: CommandContext,
): Promise<boolean> {
  return withClickhouse(context, data, async (client) => {
    const isRow = async () => {
      const query = `SELECT count() > 0 AS there FROM ${table} WHERE journal = {journal:UUID}`
      const answer = await client.query({ query, query_params: { journal }, format: 'JSONEachRow' })
      return (await answer.json<{ there: number }>()).some(({ there }) => Number(there) > 0)
    }
    if (await isRow()) throw new WeirError('REPLAY_REFUSED', 'This dead letter was replayed before: it is counted')
    const sender = createRecordSender(findKafka(context, data))
    try {
      await sender.send(topic, [{ key, value }])
    } finally {
      await sender.close()
    }
    context.progress.tell('sent; metering has to count it')
    return (await waitUntil(isRow, { deadlineMs: meteredDeadlineMs, everyMs: 250 })) === true
  })
}

/**
 * Brings a dead letter back as a record, as it is or as the text of a file. It counts once, however often it is
 * replayed.
 */
export async function replayDeadLetter(
  options: LetterOptions & { readonly value?: string },
  context: CommandContext,
): Promise<void> {
  // Alerts are not replayed: Weir writes none that cannot be read.
  const { of: metered, letter } = await find(options, meteredTopics, context)
  const { value: file } = options
  const corrected =
    file === undefined ? undefined : readInputFile(file, 'COMMAND_INVALID', `--value names ${file}, which`)
  const admin = new PartitionAdmin(findKafka(context, options.data), metered.groupId)
  const { topicId } = await describePartition(admin, letter.topic, letter.partition).finally(() => admin.close())
  const replay = planReplay(letter, topicId, corrected)
  const isMetered = await send(replay, metered, options.data, context)
  const { id }: { id?: unknown } = JSON.parse(replay.value)
  if (options.json) context.print(JSON.stringify({ id, journal: replay.journal, metered: isMetered }))
  else context.report(`replayed as ${id}: ${isMetered ? 'it is counted' : 'metering has not inserted it yet'}`)
}
