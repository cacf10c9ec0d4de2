import { Argument, type Command } from 'commander'
import type { CommandContext } from '../command-context.ts'
import { shells } from '../completion/shell-scripts.ts'
import { withExamples } from '../help-examples.ts'

/** Adds `weir completion`, and what its scripts call. */
export function addCompletion(program: Command, context: CommandContext): void {
  const completion = program
    .command('completion')
    .description('Print a script that completes commands, options and names in a shell.')
    .addArgument(new Argument('<shell>', 'for which').choices(shells))
    .action(async (shell) => (await import('./completion.ts')).printScript(shell, context))
  withExamples(completion, [
    ['completion bash > weir.bash', 'then: source weir.bash, in ~/.bashrc'],
    ['completion zsh > _weir', 'in a folder of $fpath, or sourced after compinit'],
    ['completion fish > weir.fish', 'in ~/.config/fish/completions'],
  ])
  program
    .command('complete-words', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => (await import('./completion.ts')).completeWords(words, program, context))
}
