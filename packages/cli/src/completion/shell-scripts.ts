/** Shells that have a script. */
export const shells = ['bash', 'zsh', 'fish'] as const
/** A shell that has a script. */
export type Shell = (typeof shells)[number]

const quoted = (path: string) => `'${path.replaceAll("'", `'\\''`)}'`

/**
 * Each asks `weir complete-words` for lines of a word, a tab and what it is for. The line `:files` leaves the word to
 * the shell's own completion of files. bash takes words apart at `:` and `=`: its script puts them together again.
 */
const scripts: Readonly<Record<Shell, (weir: string) => string>> = {
  bash: (weir) => `# Completion of weir for bash. Put into ~/.bashrc: source <(${weir} completion bash)
_weir() {
  local word line cut last=-1 isJoined= typed=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $last -ge 0 && ( $word == [:=] || $isJoined ) ]]; then typed[last]+=$word; else typed[++last]=$word; fi
    [[ $word == [:=] ]] && isJoined=1 || isJoined=
  done
  word=\${COMP_WORDS[COMP_CWORD]}
  [[ $word == = || $word == : ]] && word=
  cut=\${typed[last]%"$word"}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then compopt -o default; return; fi
    line=\${line%%$'\\t'*}
    line=\${line#"$cut"}
    if [[ $word == [\\"\\']* ]]; then COMPREPLY+=("$line"); else COMPREPLY+=("$(printf %q "$line")"); fi
  done < <(${weir} complete-words -- "\${typed[@]}" 2>/dev/null)
}
complete -F _weir weir`,
  zsh: (weir) => `#compdef weir
# Completion of weir for zsh. Put into ~/.zshrc, after compinit: source <(${weir} completion zsh)
_weir() {
  local -a lines values shown
  local line
  lines=("\${(@f)$(${weir} complete-words -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ $lines[1] == :files ]]; then _files; return; fi
  for line in $lines; do
    values+=("\${line%%$'\\t'*}")
    shown+=("\${line/$'\\t'/  -- }")
  done
  (( $#values )) && compadd -l -d shown -a values
}
if [[ $funcstack[1] == _weir ]]; then _weir "$@"; else compdef _weir weir; fi`,
  fish: (
    weir,
  ) => `# Completion of weir for fish. Keep it: ${weir} completion fish > ~/.config/fish/completions/weir.fish
function __weir_complete
    set -l typed (commandline -opc)
    set -l last (commandline -ct)
    set -l lines (${weir} complete-words -- $typed[2..] "$last" 2>/dev/null)
    if test "$lines[1]" = ':files'
        __fish_complete_path "$last"
    else
        printf '%s\\n' $lines
    end
end
complete -c weir -f -a '(__weir_complete)'`,
}

/** Returns the script of a shell, which calls the launcher at this path. */
export const shellScript = (shell: Shell, weir: string): string => scripts[shell](quoted(weir))
