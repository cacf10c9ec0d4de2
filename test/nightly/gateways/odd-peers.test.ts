import { afterAll, beforeAll, expect, test } from 'vitest'
import { plainProxies } from '../../support/gateways/plain-proxies.ts'
import type { Gateway } from '../../support/gateways/start-gateway.ts'
import { openWeirApps, type WeirApps } from '../../support/gateways/weir-apps.ts'
import { listen } from '../../support/listen.ts'
import { oddClients } from './odd-peers/clients.ts'
import { clientReasons, upstreamReasons } from './odd-peers/reasons.ts'
import { askOf, oddUpstreams } from './odd-peers/upstreams.ts'
import { type Odd, oddUpstream, type SentOdd, wordOf } from './odd-peers/wire.ts'

/** Sent at the same time, each through all proxies. */
const atOnce = 16
/** A row that Weir alone does not serve is tried once more, for this long. */
const patientMs = 20_000
const upstream = oddUpstream(oddUpstreams)
let weir: WeirApps
let gateways: Gateway[]
const ports: number[] = []
const table: string[] = []

beforeAll(async () => {
  const port = await listen(upstream)
  weir = await openWeirApps(`
version: 1
identity: { anonymous: free }
plans: { free: { limits: [] } }
upstreams: { odd: { url: "http://127.0.0.1:${port}", preserveHost: true } }
`)
  gateways = await Promise.all(Object.values(plainProxies).map((start) => start(`127.0.0.1:${port}`)))
  ports.push(...[weir.proxy, ...gateways.map(({ url }) => url)].map((url) => Number(new URL(url).port)))
}, 180_000)
afterAll(async () => {
  for (const gateway of gateways ?? []) await gateway.close()
  await weir?.close()
  upstream.close()
  if (process.env.ODD_PEERS_TABLE !== undefined) process.stdout.write(`${table.join('\n')}\n`)
})

/** An answer of the upstream's, whole. */
const isServed = (word: string) => /(?:^|, )[2-9]\d\d \S/.test(word) && !/hangs|cut|closed|more bytes/.test(word)

type Row = readonly [odd: Odd, sent: SentOdd]

/** What each proxy does, Weir first, and whether two others serve what Weir does not. */
async function compare(sent: SentOdd, answerMsMax?: number) {
  const words = await Promise.all(ports.map((port) => wordOf(port, sent, answerMsMax)))
  const others = words.slice(1)
  const same = others.find((word, index) => isServed(word) && others.indexOf(word) !== index)
  return { words, isAlone: same !== undefined && same !== words[0] }
}

/** The rows that Weir alone does not serve, without those that are `excused`. */
async function refusedAlone(rows: readonly Row[], excused: readonly string[], lines: string[]): Promise<string[]> {
  const alone: string[] = []
  const left = [...rows.entries()]
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [at, [{ name, source }, sent]] = next
      const { words, isAlone } = await compare(sent)
      lines[at] = [name, source, ...words]
        .map((cell) => JSON.stringify(cell).slice(1, -1).replaceAll('|', '\\|'))
        .join(' | ')
      // On a busy machine an answer may have been late.
      if (isAlone && !excused.includes(name) && (await compare(sent, patientMs)).isAlone) alone.push(name)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return alone
}

const sides = [
  ['an upstream that', oddUpstreams.map((odd, at): Row => [odd, askOf(odd, at)]), upstreamReasons],
  ['a client that', oddClients.map((odd): Row => [odd, odd]), clientReasons],
] as const

test.each(sides)(
  'Weir serves %s is odd as two of nginx, Caddy and HAProxy do, or a page says why not',
  async (...given) => {
    const [side, rows, reasons] = given
    const excused = Object.values(reasons).flat()
    const lines = [
      `\n${side} is odd | source | Weir | ${Object.keys(plainProxies).join(' | ')}`,
      '--- | --- | --- | --- | --- | ---',
    ]
    const odds: string[] = []
    expect(await refusedAlone(rows, excused, odds)).toEqual([])
    table.push(...lines, ...odds)
    const names = rows.map(([{ name }]) => name)
    expect(excused.filter((name) => !names.includes(name))).toEqual([])
  },
)
