/** An hour becomes five seconds, a day two minutes. */
const times = 720
/** Weir tries again, and looks at its servers, every few seconds: shorter spans would not see that it goes on. */
const leastSeconds = 10

/** What rules compare with is to be older than what they compare. */
const leastOffsetSeconds = 60

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/**
 * Rules as if time went faster: each of their durations (`[5m]`, `for`, `offset`) is divided by 720, but to no less
 * than 10 s, an offset to no less than 60 s, where it was longer. Thresholds stay: what may take 60 s takes 60 s.
 */
export const fastRules = (rules: string): string =>
  rules.replaceAll(/(\[|\bfor: |\boffset )(\d+)([smhd])\b/g, (_, before: string, count: string, unit: string) => {
    const seconds = Number(count) * (unitSeconds[unit] ?? 1)
    const least = before === 'offset ' ? leastOffsetSeconds : leastSeconds
    return `${before}${Math.round(Math.max(seconds / times, Math.min(seconds, least)))}s`
  })
