import htm from 'htm'
import { type ComponentChildren, h, type VNode } from 'preact'

type Template = (strings: TemplateStringsArray, ...values: unknown[]) => VNode
/** Makes elements of a template: JSX without a compiler. Texts are texts: nothing in them is markup. */
export const html = (htm as unknown as { bind(make: typeof h): Template }).bind(h)

export type Children = ComponentChildren
