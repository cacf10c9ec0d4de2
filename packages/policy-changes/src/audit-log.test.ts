import { expect, it } from 'vitest'
import { AuditLog, fileLine } from './audit-log.ts'

const entry = (id: number, line: { what: 'put'; kind: string; name: string }) => ({
  ...({
    v: 1,
    id: String(id).padStart(6, '0'),
    at: '2026-11-21T12:00:00Z',
    by: 'root',
    summary: [line],
    total: 1,
  } as const),
})

it('the audit gives up its oldest entries, but not that of the file applied last', () => {
  const audit = new AuditLog(10)
  audit.add(entry(1, fileLine('0123abcd')))
  audit.add(entry(2, fileLine('4567cdef')))
  const dropped: string[] = []
  for (let id = 3; id < 100; id += 1) {
    audit.add(entry(id, { what: 'put', kind: 'plan', name: 'free' }))
    dropped.push(...audit.takeSurplus())
  }
  expect(dropped).not.toContain('000002')
  expect([dropped[0], audit.fileRevision]).toEqual(['000001', '4567cdef'])
  const kept = audit.page(undefined, 100).map(({ id }) => id)
  expect([kept.length, kept.at(-1), kept[0]]).toEqual([11, '000002', '000099'])
  expect(dropped.length + kept.length).toBe(99)
})

it('The audit of a re-created topic has nothing of the topic before', () => {
  const audit = new AuditLog(10)
  audit.add(entry(1, fileLine('0123abcd')))
  audit.clear()
  expect([audit.fileRevision, audit.page(undefined, 10)]).toEqual([undefined, []])
  audit.add(entry(1, fileLine('0123abcd')))
  expect([audit.fileRevision, audit.page(undefined, 10).length]).toEqual(['0123abcd', 1])
})
