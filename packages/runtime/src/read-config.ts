import { WeirError } from '@weir/core/errors.ts'
import { readSmallFile } from './read-small-file.ts'
import { readSecretFile, type Secret } from './secret.ts'

/** The environment as main.ts passes it; only main.ts files read the real one. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A variable of our own, or one that OpenTelemetry defines for every program. */
export type VariableName = `WEIR_${string}` | `OTEL_${string}`

/** One variable: how its text becomes a value, and what docs/configuration.md says about it. */
export interface Variable<T> {
  readonly name: VariableName
  readonly about: string
  /** The text if the variable is unset, shown in the docs. Without one the variable must be set. */
  readonly fallback?: string
  /** Returns the value, or a sentence that says what the text should have been. */
  readonly parse: (text: string) => { readonly value: T } | { readonly problem: string }
  /** The variable that must be set where this one is: a certificate's key. */
  readonly needs?: VariableName
  /**
   * Called when every variable is valid: returns problems of several variables together, each a sentence that begins
   * with a variable.
   */
  readonly check?: (config: Readonly<Record<string, unknown>>) => readonly string[]
  /** Set by `secret`: the text may also be in the file that NAME_FILE names. */
  readonly isSecret?: true
}

/** The variables of a program, by the names of their values. */
export type Variables = Readonly<Record<string, Variable<unknown>>>
/** The values of variables. */
export type Config<V extends Variables> = { readonly [K in keyof V]: V[K] extends Variable<infer T> ? T : never }

type Named = Pick<Variable<unknown>, 'name' | 'about' | 'fallback' | 'needs'>

/** Declares a variable of any text. */
export const text = (named: Named): Variable<string> => ({ ...named, parse: (value) => ({ value }) })

/** Declares the path of a readable file; empty for none. */
export const filePath = (named: Named): Variable<string> => ({
  ...named,
  fallback: '',
  parse: (value) => {
    try {
      if (value !== '') readSmallFile(value)
      return { value }
    } catch (error) {
      return { problem: `must be the path of a readable file (${(error as Error).message})` }
    }
  },
})

type Bounds = Named & { readonly min: number; readonly max: number }

const numberOf = (form: RegExp, what: string, named: Bounds): Variable<number> => ({
  ...named,
  parse: (value) => {
    const number = form.test(value) ? Number(value) : Number.NaN
    if (number >= named.min && number <= named.max) return { value: number }
    return { problem: `must be a ${what} from ${named.min} to ${named.max}` }
  },
})

/** Declares a whole number between two bounds, both allowed. */
export const wholeNumber = (named: Bounds): Variable<number> => numberOf(/^\d+$/, 'whole number', named)

/** Declares a decimal number between two bounds, both allowed. */
export const decimal = (named: Bounds): Variable<number> => numberOf(/^\d+(?:\.\d+)?$/, 'number', named)

/** Declares a port. */
export const port = (named: Named): Variable<number> => wholeNumber({ ...named, min: 1, max: 65_535 })

/** Declares one of several words. */
export const choice = <T extends string>(named: Named & { readonly of: readonly T[] }): Variable<T> => ({
  ...named,
  parse: (value) => {
    const found = named.of.find((one) => one === value)
    return found === undefined ? { problem: `must be one of ${named.of.join(', ')}` } : { value: found }
  },
})

/** Declares a URL with one of these protocols (`redis:`), returned as it was written. */
export const url = (
  named: Named & { readonly protocols: readonly string[]; readonly emptyAllowed?: boolean },
): Variable<string> => ({
  ...named,
  parse: (value) => {
    if (value === '' && named.emptyAllowed === true) return { value }
    const parsed = URL.canParse(value) ? new URL(value) : undefined
    if (parsed && named.protocols.includes(parsed.protocol)) return { value }
    return { problem: `must be a URL that begins with ${named.protocols.map((one) => `${one}//`).join(' or ')}` }
  },
})

/** Declares `host:port[,host:port…]`. */
export const addresses = (named: Named): Variable<readonly string[]> => ({
  ...named,
  parse: (value) => {
    const list = value.split(',').map((one) => one.trim())
    if (list.every((one) => /^[^\s:/]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/.test(one))) return { value: list }
    return { problem: 'must be host:port, or several of them separated by commas' }
  },
})

/** Declares a lower-case hex SHA-256, or an empty text. */
export const sha256 = (named: Named): Variable<string> => ({
  ...named,
  parse: (value) => {
    return /^(?:[0-9a-f]{64})?$/.test(value) ? { value } : { problem: 'must be a SHA-256 as 64 lower-case hex digits' }
  },
})

/**
 * Makes a variable a secret: its text may also be in the file that NAME_FILE names. It is checked at the start;
 * `readSecret` returns the current one.
 */
export const secret = (of: Variable<string>): Variable<Secret> => ({
  ...of,
  isSecret: true,
  parse: (value) => {
    const parsed = of.parse(value)
    return 'value' in parsed ? { value: { variable: of.name, file: undefined, text: parsed.value } } : parsed
  },
})

/** The values, or all problems of the environment. */
export type ConfigResult<V extends Variables> =
  | { readonly kind: 'config'; readonly config: Config<V> }
  | { readonly kind: 'problems'; readonly problems: readonly string[] }

/**
 * Reads every variable and reports all problems together. Secrets, and values of variables whose name says so, are
 * never repeated.
 */
export function checkConfig<V extends Variables>(variables: V, environment: Environment): ConfigResult<V> {
  const problems: string[] = []
  const config: Record<string, unknown> = {}
  for (const [key, variable] of Object.entries(variables)) {
    const read = readVariable(variable, environment)
    if ('value' in read) config[key] = read.value
    else problems.push(read.problem)
  }
  if (problems.length === 0) for (const { check } of Object.values(variables)) problems.push(...(check?.(config) ?? []))
  if (problems.length > 0) return { kind: 'problems', problems }
  return { kind: 'config', config: config as Config<V> }
}

function readVariable(variable: Variable<unknown>, environment: Environment): { value: unknown } | { problem: string } {
  const { name, fallback, about, isSecret, needs, parse } = variable
  const isSet = (one: string) => Boolean(environment[one] || environment[`${one}_FILE`])
  if (needs !== undefined && isSet(name) && !isSet(needs)) return { problem: `${needs} is not set: ${name} needs it` }
  const file = isSecret === true ? environment[`${name}_FILE`] : undefined
  if (file)
    return environment[name] ? { problem: `${name} and ${name}_FILE are both set` } : readSecretOf(file, variable)
  const given = environment[name] || fallback
  if (given === undefined) return { problem: `${name} is not set: ${about}` }
  const parsed = parse(given)
  if ('value' in parsed) return parsed
  return { problem: `${name} ${parsed.problem}, but is ${isSecret === true ? 'something else' : shown(name, given)}` }
}

/** Reads the file of a secret's variable; if that fails, returns a sentence that names the variable. */
export function readSecretOf(
  file: string,
  { name, parse }: Variable<unknown>,
): { value: Secret } | { problem: string } {
  const variable = `${name}_FILE`
  try {
    const text = readSecretFile(file)
    const parsed = parse(text)
    if ('value' in parsed) return { value: { variable, file, text } }
    return { problem: `${variable} names a file whose content ${parsed.problem}, but is not` }
  } catch (error) {
    return { problem: `${variable} names a file that cannot be read (${(error as Error).message})` }
  }
}

/** A value with an `@` may be an address with a password in it, and is not shown. */
const shown = (name: string, value: string) =>
  /SECRET|TOKEN|PASSWORD/.test(name) || value.includes('@') ? 'something else' : JSON.stringify(value)

/** Does the same as `checkConfig` for a main.ts: throws one CONFIG_INVALID that lists every problem. */
export function readConfig<V extends Variables>(variables: V, environment: Environment): Config<V> {
  const result = checkConfig(variables, environment)
  if (result.kind === 'config') return result.config
  throw new WeirError('CONFIG_INVALID', `The environment is invalid:\n  ${result.problems.join('\n  ')}`)
}
