import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { SourceFile } from './rules/source-file.ts'

/** The root of the checkout that the rules are held against. */
export const root = resolve(import.meta.dirname, '../..')

/** What .gitignore leaves out, as far as this repository uses its language: names, paths, and endings. */
function readIgnored(): (path: string, name: string) => boolean {
  const lines = readFileSync(join(root, '.gitignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const names = lines.filter((line) => !line.startsWith('*.')).map((line) => line.replace(/\/$/, ''))
  const endings = lines.filter((line) => line.startsWith('*.')).map((line) => line.slice(1))
  const unknown = lines.filter((line) => /[*?[!\\]/.test(line.replace(/^\*\./, '')))
  if (unknown.length > 0) throw new Error(`.gitignore has ${unknown.join(', ')}: teach it to test/repo/read-tree.ts`)
  return (path, name) =>
    name === '.git' || names.some((one) => one === name || one === path) || endings.some((one) => name.endsWith(one))
}

function readFiles(): SourceFile[] {
  const ignored = readIgnored()
  const files: SourceFile[] = []
  const visit = (folder: string) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (ignored(path, entry.name)) continue
      if (entry.isDirectory()) visit(path)
      // A picture has no text.
      else if (entry.isFile())
        files.push({ path, text: path.endsWith('.png') ? '' : readFileSync(join(root, path), 'utf8') })
    }
  }
  visit('')
  return files
}

/** Every file that belongs to the repository, committed or about to be; read from the disk, so that it needs no git. */
export const tree: readonly SourceFile[] = readFiles()

/** The TypeScript of the repository. */
export const sources: readonly SourceFile[] = tree.filter(({ path }) => path.endsWith('.ts'))

/** The text of a file, which must exist. */
export function textOf(path: string): string {
  const file = tree.find((one) => one.path === path)
  if (file === undefined) throw new Error(`there is no ${path}`)
  return file.text
}
