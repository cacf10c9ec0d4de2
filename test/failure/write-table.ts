/**
 * Puts the rows of the last `npm test -- failure` (and `soak`) into the table of docs/reliability.md: `node
 * test/failure/write-table.ts`. A fault that was not played again keeps the row that it has.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import type { FailureRow } from '../support/failure/scenario.ts'

const document = join(projectRoot, 'docs', 'reliability.md')
const rowsFile = join(projectRoot, '.weir', 'tests', 'failure-table.jsonl')
const [begin, end] = ['<!-- table: begin -->', '<!-- table: end -->']

const number = (value: number) => value.toLocaleString('en-US')

/** All rollups in one cell, for they are equal where all is well. */
function rollupCell(rollups: FailureRow['rollups']): string {
  return [...new Set(Object.values(rollups))].map(number).join(' / ')
}

function tableLine(row: FailureRow): string {
  const { fault, answered, unrecorded, cutOff, raw, gaps, rollups, duplicates, holes, recoverSeconds } = row
  const counts = [answered, unrecorded, cutOff, raw, gaps].map(number)
  const cells = [...counts, rollupCell(rollups), number(duplicates), number(holes)]
  return `| ${[fault, ...cells, recoverSeconds.toFixed(1)].join(' | ')} |`
}

/** Of a line of the table. */
const faultOf = (line: string): string => line.split('|')[1]?.trim() ?? ''

const text = readFileSync(document, 'utf8')
const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
const [header = '', rule = '', ...old] = text.slice(from, to).trim().split('\n')
const lines = new Map(old.map((line) => [faultOf(line), line]))
for (const line of readFileSync(rowsFile, 'utf8').trim().split('\n')) {
  const row: FailureRow = JSON.parse(line)
  lines.set(row.fault, tableLine(row))
}
const table = [header, rule, ...lines.values()].join('\n')
writeFileSync(document, `${text.slice(0, from)}\n${table}\n${text.slice(to)}`)
process.stdout.write(`${lines.size} rows in docs/reliability.md\n`)
