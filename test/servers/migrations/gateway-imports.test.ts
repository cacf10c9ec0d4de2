import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { importKong } from '@weir/import/import-kong.ts'
import { importNginx } from '@weir/import/import-nginx.ts'
import { importTraefik } from '@weir/import/import-traefik.ts'
import { type ImportResult, type InputFile, importedText } from '@weir/import/imported-policy.ts'
import { openMemoryIngress } from '@weir/ingress/testing/memory-ingress.ts'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { forTest } from '../../support/opened.ts'

/** A configuration in the shape of a public one; nginx-examples.yaml says how it is written. */
interface Example {
  readonly seen: string
  readonly config: string
  readonly notes: readonly string[]
  readonly asks: Readonly<Record<string, number | 'free'>>
}

const importers: Readonly<Record<string, (files: readonly InputFile[]) => ImportResult>> = {
  nginx: importNginx,
  kong: importKong,
  traefik: importTraefik,
}

const examplesOf = (format: string): readonly Example[] =>
  parse(readFileSync(join(import.meta.dirname, `${format}-examples.yaml`), 'utf8'))

/** Notes that nearly every import of a format has. */
const isUsual = /IPv6 addresses|policy local counts|a request waits for up to \d+ ms/
/** More than any example admits. */
const freeCount = 120
const gateway = '127.0.0.1'

function imported(format: string, config: string) {
  const result = importers[format]?.([{ name: 'file', text: config }])
  if (result?.kind !== 'imported') throw new Error(JSON.stringify(result))
  return result
}

/** The policy behind a gateway that says which address each request comes from; one clock stands still for all. */
async function openWeir(policy: string) {
  const text = policy.replace('anonymous: everyone }', `anonymous: everyone, trustedProxies: [${gateway}/32] }`)
  const apps = await forTest(openMemoryIngress(text))
  return (asked: string, from: number) => {
    const [method = '', uri = '', ...pairs] = asked.split(' ')
    const headers = Object.fromEntries(pairs.map((pair) => pair.split('=')))
    return apps.api.inject({
      method: 'GET',
      url: '/v1/authorize',
      remoteAddress: gateway,
      headers: { ...headers, 'x-original-method': method, 'x-original-uri': uri, 'x-forwarded-for': `192.0.2.${from}` },
    })
  }
}

describe.each(Object.keys(importers))('weir import %s', (format) => {
  test.each(examplesOf(format))(
    'In $seen each construct is carried over or named, and each limit refuses',
    async (example) => {
      const { policy, notes } = imported(format, example.config)
      const said = notes.map(({ line, kind, what }) => `${line} ${kind} ${what}`)
      expect(said.filter((note) => !isUsual.test(note))).toEqual(
        example.notes.map((note) => expect.stringContaining(note)),
      )
      const ask = await openWeir(importedText(policy, notes))
      for (const [at, [asked, admitted]] of Object.entries(example.asks).entries()) {
        const statuses: number[] = []
        const count = admitted === 'free' ? freeCount : admitted + 1
        while (statuses.length < count) statuses.push((await ask(asked, at + 1)).statusCode)
        expect([asked, statuses]).toEqual([
          asked,
          statuses.map((_, number) => (admitted === 'free' || number < admitted ? 200 : 429)),
        ])
      }
    },
  )
})
