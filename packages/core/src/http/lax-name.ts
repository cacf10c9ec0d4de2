/**
 * The name of a member or a parameter as the laxest reader has it: Go reads `ſ` as S and the Kelvin sign as K, some end
 * a name at NUL, some drop control characters and halves of surrogate pairs.
 */
export function laxName(name: string): string {
  if (/^[\w-]*$/.test(name)) return name.toLowerCase()
  const [begin = ''] = name.split('\0', 1)
  return Array.from(begin, laxCharacter).join('')
}

/** Empty for those that are dropped. */
const laxCharacter = (character: string): string =>
  /\p{C}/u.test(character) ? '' : character.toUpperCase().toLowerCase()
