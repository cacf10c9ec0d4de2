/** Values by their names. */
export type Values = Map<string, number>

const numberOf = (text: string) => Number(text.replaceAll(',', ''))

/**
 * Computes what a document's formula says: numbers with commas, names, `+ − × / ^`, brackets and `ceil(…)`. Throws for
 * anything else.
 */
export function compute(formula: string, values: Values): number {
  const tokens = formula.match(/\d[\d,]*(?:\.\d+)?|[a-z]\w*|\S/g) ?? []
  let at = 0
  const next = () => tokens[at++] ?? ''
  const expectClosed = (value: number) => {
    if (next() !== ')') throw new Error(`no ) in ${formula}`)
    return value
  }
  function atom(): number {
    const token = next()
    if (/^\d/.test(token)) return numberOf(token)
    if (token === '(') return expectClosed(sum())
    if (token === 'ceil' && next() === '(') return expectClosed(Math.ceil(sum()))
    const value = values.get(token)
    if (value === undefined) throw new Error(`${token} is not known in ${formula}`)
    return value
  }
  function power(): number {
    const base = atom()
    if (tokens[at] !== '^') return base
    at += 1
    return base ** atom()
  }
  function product(): number {
    let value = power()
    while (tokens[at] === '×' || tokens[at] === '/') value = next() === '×' ? value * power() : value / power()
    return value
  }
  function sum(): number {
    let value = product()
    while (tokens[at] === '+' || tokens[at] === '−') value = next() === '+' ? value + product() : value - product()
    return value
  }
  const value = sum()
  if (at < tokens.length) throw new Error(`${tokens[at]} is left over in ${formula}`)
  return value
}

/**
 * Checks a code span `[name =] formula = result`, and keeps the exact value under its name. Returns what is wrong: a
 * result must be the value, rounded to as many decimals as it shows.
 */
export function checkFormula(span: string, values: Values): string | undefined {
  const parts = span.split(' = ')
  const shown = parts.pop() ?? ''
  const isNamed = parts.length === 2 || /^[a-z]\w*$/.test(parts[0] ?? '')
  const [name, formula = shown] = isNamed ? parts : [undefined, parts[0]]
  if (!/^\d[\d,]*(?:\.\d+)?$/.test(shown)) return `${span}: ${shown} is no number`
  const value = compute(formula, values)
  if (name !== undefined && values.has(name)) return `${span}: ${name} has a value already`
  if (name !== undefined) values.set(name, value)
  const decimals = shown.split('.')[1]?.length ?? 0
  const rounded = value.toFixed(decimals)
  return Number(rounded) === numberOf(shown) ? undefined : `${span}: it is ${rounded}`
}
