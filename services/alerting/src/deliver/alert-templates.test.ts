import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Policy } from '@weir/policy/policy.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { expect, onTestFinished, test } from 'vitest'
import { createAlertTemplates } from './alert-templates.ts'

const policyOf = (endpoints: object): Policy =>
  requirePolicy(JSON.stringify({ version: 1, plans: { free: { limits: [] } }, endpoints }), 'weir.yaml')
const policy = policyOf({ customers: { type: 'subject', templates: 'customers' } })

function open(files: Readonly<Record<string, string>>) {
  const dir = mkdtempSync(join(tmpdir(), 'weir-templates-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  mkdirSync(join(dir, 'customers'))
  const write = (file: string, words: string) => writeFileSync(join(dir, 'customers', file), words)
  for (const [file, words] of Object.entries(files)) write(file, words)
  let nowMs = 0
  const templates = createAlertTemplates({ dir, policyInForce: () => policy, clock: { nowMs: () => nowMs } })
  const find = () => templates.find({ templates: 'customers' }, 'weir.quota.reached', 'txt')?.text
  return { templates, find, write, wait: (ms: number) => (nowMs += ms) }
}

const mail = (words: string) => `Subject: ${words}\n`

test('the type wins over the default; without either the words are Weir’s own', () => {
  const { find, templates } = open({ 'default.txt': mail('any'), 'weir.quota.reached.txt': mail('quota') })
  expect(find()).toBe(mail('quota'))
  expect(templates.find({ templates: 'customers' }, 'weir.limit.blocked', 'txt')?.text).toBe(mail('any'))
  expect(templates.find({}, 'weir.quota.reached', 'txt')).toBeUndefined()
  expect(templates.find({ templates: 'customers' }, 'weir.quota.reached', 'slack')).toBeUndefined()
})

test('a file that is wrong is named and not used', () => {
  const { find, templates } = open({
    'default.txt': 'no subject',
    'weir.quota.reached.txt': mail('{{constructor}}'),
    'default.md': '',
    'weir.quota.txt': mail('a'),
    'default.de.txt': mail('a'),
    'default.slack': 'a'.repeat(65_537),
    '.git': '',
  })
  expect(find()).toBeUndefined()
  expect(templates.findProblems().map((one) => one.replace(/^.*\/customers\//, '').slice(0, 45))).toEqual([
    'default.de.txt must be called TYPE.txt|html|s',
    'default.md must be called TYPE.txt|html|slack',
    'default.slack has 65537 characters; a templat',
    'default.txt must begin with a subject line, s',
    'weir.quota.reached.txt names {{constructor}};',
    'weir.quota.txt must be called TYPE.txt|html|s',
  ])
})

test('an edited file is used after ten seconds, without a restart', () => {
  const { find, write, wait } = open({ 'default.txt': mail('old') })
  expect(find()).toBe(mail('old'))
  write('default.txt', mail('new'))
  wait(9_999)
  expect(find()).toBe(mail('old'))
  wait(1)
  expect(find()).toBe(mail('new'))
})

test('a folder that is missing, and a directory that is not set, are named', () => {
  const clock = { nowMs: () => 0 }
  const none = createAlertTemplates({ dir: '', policyInForce: () => policy, clock })
  expect(none.findProblems()).toEqual(['WEIR_TEMPLATES_DIR is not set, but some endpoints use templates'])
  const missing = createAlertTemplates({ dir: '/nowhere', policyInForce: () => policy, clock })
  expect(missing.findProblems()).toEqual([expect.stringContaining('/nowhere/customers cannot be read')])
})
