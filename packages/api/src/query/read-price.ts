import type { Values } from './read-parameters.ts'

/** The parts of a question that decide whether its rows have a price. */
interface PriceQuestion {
  readonly by: readonly string[]
  readonly step: string | undefined
  readonly only: Values<string>
  readonly except: Values<string>
  readonly top: string | undefined
  readonly format: string
}

/** Reads `price`, with what is wrong about it: a price is of all that a subject used in whole months. */
export function readPrice(price: string | undefined, asked: PriceQuestion, problems: string[]): boolean {
  if (price !== 'true') return false
  const { by, step, only, except, top, format } = asked
  if (by.join() !== 'subject') problems.push('price=true takes by=subject: a price list prices what a subject used')
  if (step !== 'month' && step !== 'total')
    problems.push('price=true takes step=month, or step=total over whole months')
  const partial = [...Object.keys(only), ...Object.keys(except)].filter((name) => name !== 'subject')
  if (partial.length > 0) problems.push(`price=true takes no filter by ${partial.join(', ')}: parts have no price`)
  if (top !== undefined) problems.push('price=true takes no top: the other row has no price')
  if (format !== 'json') problems.push('price=true goes with format=json')
  return true
}
