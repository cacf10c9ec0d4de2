import { Writable } from 'node:stream'
import { showUsage } from '@weir/cli/commands/usage.ts'
import { noProgress } from '@weir/cli/terminal/progress.ts'

/** Parameters of `GET /v1/usage`. */
export type Parameters = Record<string, string | readonly string[]>

/** JSON whose whole numbers are texts of all their digits. */
export const readExactly = (text: string) => JSON.parse(text.replaceAll(/":(-?\d+)(?=[,}\]])/g, '":"$1"'))

/** What `weir usage` prints to its output, asked in this process: JSON, or the whole answer in a format. */
export async function askCommand(
  environment: Readonly<Record<string, string>>,
  { by = '', other = 'true', ...given }: Parameters,
  how: { readonly format?: string; readonly exact?: boolean } = {},
): Promise<string> {
  const printed: string[] = []
  const stdout = new Writable({
    write(chunk, _, done) {
      printed.push(String(chunk))
      done()
    },
  })
  const camelCase = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const options = Object.fromEntries(Object.entries(given).map(([name, value]) => [camelCase(name), value]))
  const rest = { data: '', json: how.format === undefined, limit: 10_000, price: false, exact: false }
  await showUsage(
    { ...options, ...rest, by: String(by), other: other === 'true', ...how },
    {
      environment: { ...environment },
      cwd: '/',
      signal: AbortSignal.timeout(60_000),
      progress: noProgress,
      report: () => undefined,
      print: (text: string) => void printed.push(text),
    },
    stdout,
  )
  return printed.join('')
}
