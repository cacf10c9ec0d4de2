/** Random numbers that a seed repeats; print the seed when a test that uses them fails. */
export type SeededRandom = ReturnType<typeof createSeededRandom>

/** mulberry32. The seed is `WEIR_TEST_SEED`, or a new one. */
export function createSeededRandom(seed = Number(process.env.WEIR_TEST_SEED ?? Date.now() % 2 ** 31)) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    seed,
    /** An integer from `min` to `max`, both included. */
    integer,
    pick: <T>(from: readonly [T, ...T[]]) => from[integer(0, from.length - 1)] ?? from[0],
    /** True once in `times`. */
    oneIn: (times: number) => integer(1, times) === 1,
  }
}
