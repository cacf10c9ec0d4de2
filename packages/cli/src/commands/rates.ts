import type { Entity } from '@weir/api/policy.ts'
import type { JsonObject } from '@weir/policy/entities.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { yamlOf } from '@weir/policy/state/policy-text.ts'
import type { CommandContext, CommonOptions } from '../command-context.ts'
import { consoleAnswer } from '../console/console-client.ts'
import { differingRates, importRates } from '../rates/import-rates.ts'
import { readInputFile } from '../read-input-file.ts'
import { textTable } from '../text-table.ts'

interface RatesOptions {
  readonly provider: readonly string[]
}

const readRates = (file: string, { provider }: RatesOptions, from: string) =>
  importRates(readInputFile(file, 'IMPORT_REFUSED', file), { providers: provider, from })

const cardsOf = (rateCards: JsonObject, name: string) => [
  ...requirePolicy(JSON.stringify({ version: 1, rateCards }), name).rateCards.values(),
]

/** Prints a rate card with the prices of a public map of models, from a time on. */
export function printRates(file: string, options: RatesOptions & { readonly from: string }, context: CommandContext) {
  const rateCards = readRates(file, options, options.from)
  cardsOf(rateCards, file)
  const { prices = [], models = {}, ...head } = rateCards.usd as Readonly<Record<string, JsonObject>>
  const headed = Object.entries(head).map(([key, value]) => `    ${key}: ${yamlOf(value)}`)
  const ofModels = Object.entries(models).map(([model, bounds]) => `      ${yamlOf(model)}: ${yamlOf(bounds)}`)
  const ofPrices = Object.values(prices).map((entry) => `      - ${yamlOf(entry)}`)
  const lines = ['  usd:', ...headed, '    models:', ...ofModels, '    prices:', ...ofPrices]
  context.print(['version: 1', 'rateCards:', ...lines].join('\n'), 'exactly')
}

/** Prints which prices in force differ from those of such a file. */
export async function diffRates(file: string, options: RatesOptions & CommonOptions, context: CommandContext) {
  const [theirs] = cardsOf(readRates(file, options, '1970-01-01T00:00:00Z'), file)
  const { items } = await consoleAnswer<{ readonly items: readonly Entity[] }>(context, options, {
    path: '/v1/rateCards',
  })
  const ours = cardsOf(Object.fromEntries(items.map(({ name, body }) => [name, body as JsonObject])), '/v1/rateCards')
  const found = theirs === undefined ? [] : differingRates(ours, theirs, Date.now())
  if (options.json) context.print(JSON.stringify(found))
  else if (found.length === 0) context.report(`${file} has no other prices than those in force`)
  else {
    const head = ['CARD', 'MODEL', 'UNIT', 'IN FORCE', 'IN THE FILE']
    context.print(textTable([head, ...found.map((one) => Object.values(one))]))
    context.report('Prices are of a million units.')
  }
}
