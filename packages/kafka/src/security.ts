import type { Secret } from '@weir/runtime/secret.ts'

/**
 * How Kafka is to be spoken to. Plain data: a thread is started with it. Files and secrets are read again for each
 * connection.
 */
export interface KafkaSecurity {
  /** Undefined for plain text. Paths of files; empty for none. */
  readonly tls:
    | { readonly ca: string; readonly cert: string; readonly key: string; readonly serverName: string }
    | undefined
  readonly sasl: PasswordLogin | OauthLogin | undefined
}

/** A user and its password. */
export interface PasswordLogin {
  readonly mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512'
  readonly username: string
  readonly password: Secret
}

/** Tokens by the client credentials grant (RFC 6749, 4.4). */
export interface OauthLogin {
  readonly mechanism: 'OAUTHBEARER'
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: Secret
  /** Empty for none. */
  readonly scope: string
}
