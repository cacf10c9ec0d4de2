/** One record of the decisions topic, as metering sees it. */
export interface DecisionMessage {
  readonly offset: string
  readonly key: Buffer | null
  readonly value: Buffer | null
}

/** A record that could not be read, kept whole for a person. */
export interface DeadLetter {
  readonly message: DecisionMessage
  readonly reason: string
}

/** Rows of one partition in the order of their offsets. `token` names exactly these rows. */
export interface RowBlock {
  readonly lines: Buffer
  readonly rows: number
  readonly token: string
}

/** What a block insert came to. `unreadable`: the data itself was refused, sending it again cannot help. */
export type InsertOutcome =
  | { readonly kind: 'inserted' }
  | { readonly kind: 'unreadable'; readonly error: Error }
  | { readonly kind: 'unavailable'; readonly error: Error }

export interface UsageStore {
  insert(block: RowBlock): Promise<InsertOutcome>
}

export interface DeadLetterSink {
  /** Resolves when all of them are safely kept. */
  send(partition: number, letters: readonly DeadLetter[]): Promise<void>
}
