/**
 * What the body of a route's own refusal may name: the limit, `limit` or `blocked`, whole seconds, and the id of the
 * record, empty without one. None of the values needs escaping in JSON, XML or HTML.
 */
export const refusalValueNames = ['limit', 'reason', 'retry_after', 'decision'] as const

const placeholder = /\{\{([^{}]*)\}\}/g

/** The names between double braces, as written. */
export const namesInTemplate = (template: string): readonly string[] =>
  Array.from(template.matchAll(placeholder), ([, name = '']) => name)

/** The text with the values in their places; other names stay as written. */
export function fillTemplate(template: string, values: Readonly<Record<string, string>>): string {
  return template.replaceAll(placeholder, (written, name: string) =>
    Object.hasOwn(values, name) ? (values[name] ?? '') : written,
  )
}
