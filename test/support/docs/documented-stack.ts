import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { untilAvailable } from '../until-available.ts'
import { type RunningWeir, runWeir, weirUp } from '../weir-up.ts'
import { documentedPolicy } from './documented-policy.ts'

/** How long a block may run, on a machine that is busy with other tests. */
export const blockMaxMs = 200_000
const receiver = 'http://127.0.0.1:8071'
/**
 * `./weir` of a document's folder: on the stack's data. `up` only checks, because Weir runs already; `status` may be
 * asked while the machine is too busy to answer it; what follows without end is ended after some seconds.
 */
const launcher = ({ dir, line }: RunningWeir) => `#!/bin/bash
case "$1" in
  '') # Else it asks the last one of this checkout, which may be another test's.
    export WEIR_CONSOLE_URL='${line.console}' WEIR_ADMIN_TOKEN='${line.adminToken}'
    for _ in 1 2 3 4 5; do '${projectRoot}/weir' && exit 0; done; exit 1 ;;
  check | import) exec '${projectRoot}/weir' "$@" ;;
  up) shift; exec '${projectRoot}/weir' check "$@" ;;
  status) for _ in 1 2 3 4 5; do '${projectRoot}/weir' "$@" --data '${dir}' && exit 0; done; exit 1 ;;
  tail) case "$*" in *--no-follow* | *--to*) ;; *) timeout 10 '${projectRoot}/weir' "$@" --data '${dir}'; [ $? = 124 ]; exit ;; esac ;;
esac
exec '${projectRoot}/weir' "$@" --data '${dir}'
`
/** Before the commands: an answer from 400 on is a failure, and the command that failed is named. */
const prelude = `
set -uo pipefail
curl() {
  local code=0
  case "$*" in *stream*) timeout 5 curl -sSf "$@" || code=$? ;; *) command curl -sS --fail-with-body "$@" || code=$? ;; esac
  [ $code = 0 ] || [ $code = 124 ] || { echo "failed: curl $*" >&2; return $code; }
}
set -e
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
`

const lastMonth = () => {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1)).toISOString().slice(0, 7)
}

/** A whole Weir on which the commands of the documents run, with all that they ask about. */
export async function startDocumentedStack() {
  const folder = await mkdtemp(join(tmpdir(), 'weir-test-commands-'))
  const file = join(folder, 'weir.yaml')
  await writeFile(file, JSON.stringify(documentedPolicy))
  const weir = await weirUp(['--policy', file])
  // Where its receiver is, only a Weir that runs knows.
  const policy = JSON.stringify(documentedPolicy).replaceAll(receiver, weir.line.receiver)
  await writeFile(file, policy)
  const { code, stderr } = await runWeir(['apply', '--policy', file, '--data', weir.dir])
  if (code !== 0) throw new Error(stderr)
  const words = await wordsOf(weir)
  return {
    /** Runs a block of commands; undefined if every one of them ended well. */
    async run(commands: string) {
      const own = await mkdtemp(join(folder, 'run-'))
      await mkdir(join(own, '.weir'), { recursive: true })
      await Promise.all([
        symlink(weir.dir, join(own, '.weir/data')),
        symlink(join(projectRoot, 'docs'), join(own, 'docs')),
        writeFile(join(own, 'weir'), launcher(weir)).then(() => chmod(join(own, 'weir'), 0o755)),
        ...['weir.yaml', 'mine.yaml'].map((name) => writeFile(join(own, name), policy)),
        ...['customers.json', 'subscriptions.json'].map((name) =>
          writeFile(join(own, name), '{ "acme": "cus_1", "billed": "cus_2" }'),
        ),
      ])
      let text = commands
      for (const [written, meant] of words) text = text.replaceAll(written, meant)
      return await bash(prelude + text, own)
    },
    async close() {
      await weir.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function bash(text: string, cwd: string): Promise<{ failed: string | undefined; stdout: string }> {
  return new Promise((done) => {
    // npm tells commands in which folder it was called.
    const { INIT_CWD: _, ...env } = process.env
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    const child = spawn('timeout', [`${blockMaxMs / 1_000}`, 'bash', '-c', text], { cwd, env, stdio: [...stdio] })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (data: Buffer) => (stdout += data.toString()))
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()))
    child.once('close', (code) => done({ failed: code === 0 ? undefined : `exit ${code}\n${stderr}${stdout}`, stdout }))
  })
}

/** What the documents write, and what is meant of this stack, in the order in which it is replaced. */
async function wordsOf({ line }: RunningWeir): Promise<[string | RegExp, string][]> {
  const api = async <T>(request: string, body?: object): Promise<T> => {
    const [method = '', path = ''] = request.split(' ')
    const headers = { authorization: `Bearer ${line.adminToken}`, 'content-type': 'application/json' }
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const answer = await untilAvailable(() => fetch(line.console + path, sent))
    if (!answer.ok) throw new Error(`${request}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
  const ask = async (key: string, times: number) => {
    let answer: Response | undefined
    for (let at = 0; at < times; at += 1) {
      answer = await fetch(`${line.ingress}/hello`, { headers: { 'x-api-key': key } })
      await answer.arrayBuffer()
    }
    return answer?.headers.get('weir-decision') ?? ''
  }
  const [admitted, denied] = [await ask(line.demoKey ?? '', 1), await ask('acme-key', 21)]
  // On a busy machine a request may be allowed because Redis was late, and not counted.
  const lock = (key: string) =>
    waitUntil(
      async () => {
        const answer = await fetch(`${line.ingress}/hello`, { headers: { 'x-api-key': key } })
        await answer.arrayBuffer()
        return answer.status === 429
      },
      { deadlineMs: 20_000 },
    )
  await Promise.all([ask(line.demoSmallKey ?? '', 22), lock('locked-key'), lock('locked2-key')])
  const first = async <T extends { readonly id: string }>(path: string) => {
    const page = () => api<{ items: T[] }>(`GET ${path}`).then(({ items }) => items)
    const items = await waitUntil(async () => (await page()).length > 1 && page(), { deadlineMs: 20_000 })
    return (items || []).map(({ id }) => id)
  }
  const [alerts, blocks] = await Promise.all([first('/v1/alerts'), first('/v1/blocks')])
  const { name: silence } = await api<{ name: string }>('POST /v1/silences', { subjects: ['acme'], for: '2h' })
  const { token: portal } = await api<{ token: string }>('POST /v1/subjects/acme/portal', { expires_in: '1h' })
  const month = lastMonth()
  const portOf = (url: string) => new URL(url).port
  return [
    // A load on all subjects would use up what other commands need.
    [/weir load --rate \d+ --for \d+s/g, 'weir load --subject billed --rate 10 --for 1s'],
    ['http://127.0.0.1:8080', line.ingress],
    ['http://127.0.0.1:8081', line.api],
    ['http://127.0.0.1:8090', line.console],
    [receiver, line.receiver],
    ['http://127.0.0.1:9102', line.ops.metering ?? ''],
    ['https://api.getlago.com', line.upstream],
    ['127.0.0.1:18123', new URL(line.clickhouse).host],
    ['-p 16379', `-p ${portOf(line.redis)}`],
    ['127.0.0.1:19092', line.kafka],
    ['-t TOPIC', '-t weir.decisions.v1'],
    ['X-API-Key: KEY', `X-API-Key: ${line.demoKey}`],
    ['Bearer TOKEN', `Bearer ${line.adminToken}`],
    ['Bearer $KEY', 'Bearer key'],
    ['weir_portal_…', portal],
    ['01a20287-6fb6-7000-8000-000000000000', denied],
    [/2026-11(?!-)/g, month],
    [/(?<=alerts (?:show|redeliver) )ID/g, alerts[0] ?? ''],
    ['lift ID --forget', `lift ${blocks[1]} --forget`],
    ['lift ID', `lift ${blocks[0]}`],
    ['silences end NAME', `silences end ${silence}`],
    [/(?<=grep |')ID\b/g, admitted],
  ]
}
