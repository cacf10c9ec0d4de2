/** In the order in which a failure is cheapest to find. */
export const tiers = ['repo', 'unit', 'lua', 'servers', 'smoke'] as const
/** What checks things outside the product: the folders of `test/nightly`. */
export const nightlyTiers = ['gateways', 'stand-ins', 'rights', 'tls'] as const
/** Only when asked for: they take from minutes to as long as one likes. */
export const tiersByName = [...nightlyTiers, 'browser', 'packaging', 'docker', 'failure', 'soak'] as const
/** Not tests: the type checker, the linter and the repo's own rules. */
export const checkWord = 'check'
/** What the changes since a commit touch. */
export const changedWord = 'changed'
/** All of `nightlyTiers`. */
export const nightlyWord = 'nightly'
/** All tiers that need no name and, of the nightly ones, what the commits of the last day touch. */
export const recentWord = 'recent'

/** What `npm test` may be told first. */
export const tierWords: readonly string[] = [...tiers, ...tiersByName, checkWord, changedWord, nightlyWord, recentWord]

/** Where the test files of a tier lie. */
export const folderOf = (tier: string): RegExp =>
  tier === 'unit' ? /^(?:packages|services|infra)\// : new RegExp(`^test/(?:nightly/)?${tier}/`)
