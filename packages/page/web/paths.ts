/** The paths that people open: the console serves its document at each, and the page draws what it has for it. */
export const paths = [
  ...(['/', '/live', '/usage', '/subjects', '/subjects/:id', '/decisions', '/decisions/:id', '/blocks'] as const),
  ...([
    '/alerts',
    '/alerts/:id',
    '/endpoints',
    '/policy',
    '/policy/change',
    '/changes',
    '/changes/:id',
    '/keys',
  ] as const),
  ...(['/search', '/tokens', '/invoices', '/invoices/:id', '/prices', '/system', '/me'] as const),
] as const

export type PagePath = (typeof paths)[number]
