import { expect, test } from 'vitest'
import { healthOf } from './own-journal.ts'

const backlog = { records: 0, bytes: 0, oldestAppendMs: undefined }
const well = { trouble: undefined, isOutOfSpace: false, backlog, maxBytes: 100, unsentFor: '', lacksCopies: false }

test.each([
  ['a journal that is well', {}, undefined],
  ['a stalled disk', { trouble: 'stalled' as const, isOutOfSpace: true }, 'the journal accepts no records: stalled'],
  ['a full disk', { isOutOfSpace: true, unsentFor: 'refused' }, 'no room for the next segment in WEIR_JOURNAL_DIR'],
  ['a journal that is nearly full', { backlog: { ...backlog, bytes: 81 }, unsentFor: 'gone' }, 'nearly full: .*: gone'],
  ['records that Kafka does not take', { unsentFor: 'gone' }, "Kafka does not accept the journal's records: gone"],
  [
    'one copy although there are several brokers',
    { lacksCopies: true },
    'keeps one copy of some records: run weir topics',
  ],
])('/readyz says of %s what an operator has to know, as a warning', (_, found, words) => {
  const warning = expect.stringMatching(words ?? '')
  expect(healthOf({ ...well, ...found })).toEqual(words === undefined ? undefined : { warning })
})
