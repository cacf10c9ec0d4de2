/** A policy that is refused, and everything that people are shown of it, behind the name of its file. */
export interface BadPolicy {
  readonly name: string
  readonly text: string
  readonly problems: readonly string[]
}

/**
 * bad-policies.txt: `=== name`, the whole text of a policy, and after `! ` everything that people are shown of it, in
 * this order and nothing else.
 */
export const parseBadPolicies = (file: string): readonly BadPolicy[] =>
  file
    .split(/^=== /m)
    .slice(1)
    .map((block) => {
      const [name = '', ...lines] = block.trimEnd().split('\n')
      const isProblem = (line: string) => line.startsWith('! ')
      const text = lines.filter((line) => !isProblem(line)).join('\n')
      return { name, text, problems: lines.filter(isProblem).map((line) => `weir.yaml:${line.slice(2)}`) }
    })
