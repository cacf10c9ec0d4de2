/** Why no units were given: the policy; a limit or route; too few are left; a limit refuses; Redis or the journal. */
export const leaseDeclines = ['not-allowed', 'unsuited', 'too-little', 'refused', 'unavailable'] as const
/** One of `leaseDeclines`. */
export type LeaseDecline = (typeof leaseDeclines)[number]

/** Most decisions of a lease: more, and what one application holds for nothing is too much. */
export const leaseCountMax = 10_000
