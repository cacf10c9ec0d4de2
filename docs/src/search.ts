/**
 * How the browser searches. VitePress hands these functions to the page as text: each must be whole by itself.
 *
 * A question has words that say nothing, and short ones that begin many others. Decisions, changes, the API
 * reference and pages for contributors come behind the guides.
 */
export const searchOptions = {
  processTerm: (term: string): string | null => {
    const small =
      ' a an and are as at be by can do does for from how i in is it its me my not of on or so that the this to was we were what when where which who why will with you your '
    const word = term.toLowerCase()
    return small.includes(` ${word} `) ? null : word
  },
  fuzzy: (term: string): number | false => (term.length > 4 ? 0.2 : false),
  prefix: (term: string): boolean => term.length > 2,
  boost: { title: 4, text: 2, titles: 1 },
  boostDocument: (id: string): number =>
    /\/(?:decisions|test)\/|\/(?:changelog|contributing|console-reference|check-reference)\.html/.test(id) ? 0.2 : 1,
}
