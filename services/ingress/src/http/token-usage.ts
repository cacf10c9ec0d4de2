import type { Usage } from '@weir/decide/correct/usage-settler.ts'
import { Histogram } from '@weir/runtime/histogram.ts'

/** The powers of 4 that OpenTelemetry's conventions name. */
const bounds = Array.from({ length: 14 }, (_, power) => 4 ** power)
const types = ['input', 'output'] as const
const operations = ['openai chat', 'openai embeddings', 'anthropic chat']
const isEmbedding = /^[^?]*\/embeddings(?:\?|$)/

/**
 * OpenTelemetry's `gen_ai.client.token.usage`: the tokens of each exchange whose response said them. It leaves models
 * out, because callers name them: usage by unit has them.
 */
export class TokenUsage {
  readonly #cells = operations.map((name) => ({ name, input: new Histogram(bounds), output: new Histogram(bounds) }))
  readonly #shown = new Set<string>()

  observe(preset: string | undefined, path: string, { units, basis }: Usage): void {
    if (basis !== 'reported') return
    const asked = `${preset} ${preset === 'openai' && isEmbedding.test(path) ? 'embeddings' : 'chat'}`
    const cell = this.#cells.find(({ name }) => name === asked)
    for (const type of types) {
      const tokens = units.get(`${type}_tokens`) ?? 0
      if (tokens > 0) cell?.[type].observe(tokens)
    }
  }

  /** Every histogram of the presets that routes have, or had, with its provider, operation and type of tokens. */
  series(presets: Iterable<string>) {
    for (const preset of presets) this.#shown.add(preset)
    return this.#cells
      .filter(({ name }) => this.#shown.has(name.split(' ')[0] ?? ''))
      .flatMap((cell) => types.map((type) => [[...cell.name.split(' '), type], cell[type]] as const))
  }
}
