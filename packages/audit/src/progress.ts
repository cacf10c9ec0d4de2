/** How far a command is, for the person who waits for it. */
export interface Progress {
  /** Says what is done now. `share`: how much of all is done, from 0 to 1, if that is known. */
  readonly tell: (text: string, share?: number) => void
  /** The command has done what it was waited for, and goes on. */
  readonly end: () => void
}
