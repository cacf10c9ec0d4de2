/** The words for what weir.yaml's format has and this version does not; it is refused by its name. `instead` names what there is. */
export function notBuilt(what: string, instead = ''): string {
  return `this version of Weir does not have ${what}${instead === '' ? '' : `; it has ${instead}`}`
}
