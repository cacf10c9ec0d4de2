import { relative } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { formatImportProblem } from '@weir/import/foreign-file.ts'
import { importEnvoy } from '@weir/import/import-envoy.ts'
import { importKong } from '@weir/import/import-kong.ts'
import { importNginx } from '@weir/import/import-nginx.ts'
import { importTraefik } from '@weir/import/import-traefik.ts'
import {
  formatImportNote,
  type ImportResult,
  type InputFile,
  importedJson,
  importedText,
  inShadow,
} from '@weir/import/imported-policy.ts'
import type { CommandContext } from '../command-context.ts'
import { readInputFile } from '../read-input-file.ts'

/** What can be imported: how its files are called, and who reads them. */
const formats = {
  envoy: { files: 'a configuration of envoyproxy/ratelimit', read: importEnvoy },
  nginx: { files: 'a configuration of nginx', read: importNginx },
  kong: { files: 'a declarative configuration of Kong', read: importKong },
  traefik: { files: 'a dynamic configuration of Traefik', read: importTraefik },
} satisfies Record<string, { files: string; read: (files: readonly InputFile[]) => ImportResult }>

/** A program whose limits can be imported. */
export type ImportFormat = keyof typeof formats

/** Names a file relative to the current folder if it is below that folder. */
function shortName(cwd: string, file: string): string {
  const short = relative(cwd, file)
  return short.startsWith('..') ? file : short
}

/**
 * Prints limits and routes that decide as the other program's files did. What cannot be converted is listed at their
 * head and on standard error, so that a redirected policy does not hide it. In shadow limits deny nothing, to run
 * alongside the other program for a while. Returns whether everything was converted.
 */
export function importFrom(
  format: ImportFormat,
  files: readonly string[],
  { json, shadow }: { readonly json: boolean; readonly shadow: boolean },
  context: CommandContext,
): { readonly isWhole: boolean } {
  const named = files.map((file) => ({
    name: shortName(context.cwd, file),
    text: readInputFile(file, 'IMPORT_REFUSED', file),
  }))
  const result = formats[format].read(named)
  if (result.kind === 'problems') {
    const problems = result.problems.map((problem) => `\n  ${formatImportProblem(problem)}`)
    throw new WeirError('IMPORT_REFUSED', `This is not ${formats[format].files}.${problems.join('')}\n`)
  }
  const { notes } = result
  const policy = shadow ? inShadow(result.policy) : result.policy
  if (json) {
    context.print(JSON.stringify({ policy: importedJson(policy), notes }))
  } else {
    for (const note of notes) context.report(formatImportNote(note))
    context.print(importedText(policy, notes).trimEnd(), 'exactly')
  }
  return { isWhole: notes.every(({ kind }) => kind !== 'lost') }
}
