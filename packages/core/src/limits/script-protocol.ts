/*
 * The numbers that the Lua scripts and TypeScript exchange. This is the only place that defines them: in the Lua
 * sources they stand by name, such as `operations.PEEK`, and packages/redis/src/scripts.ts puts the number there when
 * it makes a script.
 */

/**
 * What a request of a call to decide.lua asks for: the first element of the request. The order counts: those between
 * REFUND and RENEW keep markers, and RESERVE and RESERVE_ONCE charge with a reservation.
 */
export const operations = {
  CHARGE: 0,
  PEEK: 1,
  REFUND: 2,
  CHARGE_ONCE: 3,
  RESERVE: 4,
  RESERVE_ONCE: 5,
  VOID: 6,
  RENEW: 7,
} as const

/** How decide.lua decided a request. A refund has ALLOWED if anything was given back, else DENIED. */
export const statuses = {
  ALLOWED: 1,
  DENIED: 2,
  COST_EXCEEDS_CAPACITY: 3,
  BLOCKED: 4,
  /** An idempotency key under which a request was allowed before. */
  REPLAYED: 5,
  TOO_MANY_MARKERS: 6,
} as const

/** Why decide.lua decided nothing for a request, while the other requests of the call were decided. */
export const malformed = {
  SHAPE: -1,
  COST: -2,
  LIMIT: -3,
  KEY: -4,
  PLANNING: -5,
  /** The key is in this call with another definition of its limit. */
  DEFINITION: -6,
} as const

/**
 * How a limit treats a request that does not fit: deny; pass uncounted; deny, with blocks that only pause.lua sets; or
 * pass, and count what does not fit too.
 */
export const modes = { DENY: 0, PASS: 1, DELAY: 2, CHARGE: 3 } as const

/** The cost, in a list of costs, that asks whether a unit would be allowed and charges nothing. */
export const reservedCosts = { PEEK: -1 } as const

/** The second byte of a reservation's marker. */
export const phases = { OPEN: 0, RECORD_PENDING: 1, RECORDED: 2, VOID: 3 } as const

/** What raise-to-floor.lua did to a count. */
export const floorOutcomes = { LEFT: 0, RAISED: 1, OTHER_PERIOD: 2, PERIOD_OVER: 3, LOWERED: 4 } as const

/** The tables by the names that they have in the Lua sources. */
export const scriptConstants: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  operations,
  statuses,
  malformed,
  modes,
  reserved_costs: reservedCosts,
  phases,
  floor_outcomes: floorOutcomes,
}
