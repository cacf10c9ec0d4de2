/** The paths that people open: the console serves its document at each, and the page draws what it has for it. */
export const paths = [
  '/',
  '/live',
  '/usage',
  '/subjects',
  '/subjects/:id',
  '/decisions',
  '/decisions/:id',
  '/blocks',
  '/alerts',
  '/alerts/:id',
  '/endpoints',
  '/policy',
  '/policy/change',
  '/changes',
  '/changes/:id',
  '/keys',
  '/tokens',
  '/spend',
  '/prices',
  '/invoices',
  '/invoices/:id',
  '/search',
  '/system',
  '/me',
] as const

export type PagePath = (typeof paths)[number]
