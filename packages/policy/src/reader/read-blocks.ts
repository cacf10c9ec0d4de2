import type { ManualBlock } from '../policy.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import { cidr } from './read-identity.ts'
import * as t from './value-types.ts'

/** Each request is looked up among them; those that ended are deleted a day later. */
const blocksMax = 10_000
/** A block that is forgotten ends within a year. */
export const blockLongestMs = 366 * 86_400_000

const block = t.object(
  'a block',
  {
    subject: t.optional('The blocked subject.', t.anyText('a subject')),
    key: t.optional('The id of the blocked key.', t.anyText('the id of a key')),
    ip: t.optional('The blocked or exempt address or network.', cidr),
    exempt: t.withDefault('Exempts the address from blocks and limits by address.', t.boolean, false),
    since: t.required('Time of creation.', t.time),
    until: t.required('End of the block, exclusive.', t.time),
    by: t.required('Creator: the name of a token.', t.name),
    reason: t.optional('Reason.', t.reason),
  },
  { oneOf: [t.has('subject'), t.has('key'), t.has('ip')] },
)

/** The section `blocks`. */
export const blockEntries = t.entries(block.schema, { plural: 'blocks', one: 'a block', max: blocksMax })

/** Who is blocked or exempt by hand, by name of the block. */
export const readBlocks = (reader: PolicyReader, at: SourcePosition) =>
  blockEntries.each(reader, at, (name, field): ManualBlock | undefined => {
    const found = block.find(reader, field)
    if (found === undefined) return undefined
    const { subject, key: keyId, ip: network, exempt: isExempt = false, until: untilMs } = found.values
    if (['subject', 'key', 'ip'].filter((one) => found.fields.has(one)).length !== 1) {
      return reader.problem(field, 'needs exactly one of `subject`, `key` and `ip`')
    }
    const exemptAt = found.fields.get('exempt')
    if (isExempt && network === undefined && exemptAt !== undefined) {
      return reader.problem(exemptAt, 'needs `ip`: only addresses can be exempt')
    }
    return untilMs === undefined ? undefined : { name, subject, keyId, network, isExempt, untilMs }
  })
