/** A header whose text names what is left of limits: texts, and between them what stands there. */
export interface HeaderTemplate {
  readonly name: string
  readonly texts: readonly string[]
  readonly places: readonly { readonly kind: 'r' | 't' | 'e'; readonly limit: number }[]
}

/** `{r0}`: what is left of the first limit; `{t0}`: seconds until it resets; `{e0}`: the Unix time of that. */
export function readTemplate(name: string, text: string): HeaderTemplate {
  const places = [...text.matchAll(/\{([rte])(\d+)\}/g)].map(([, letter, limit]) => {
    const kind = letter === 'r' || letter === 't' ? letter : 'e'
    return { kind, limit: Number(limit) } as const
  })
  return { name, texts: text.split(/\{[rte]\d+\}/), places }
}
