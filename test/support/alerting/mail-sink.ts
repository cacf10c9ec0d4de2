import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'

/** A mail as the server accepted it. */
export interface Mail {
  readonly to: readonly string[]
  readonly message: string
}

/** An SMTP server that accepts every mail and keeps it. */
export async function startMailSink() {
  const mails: Mail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    async onData(stream, { envelope }, done) {
      const message = await text(stream).catch(() => undefined)
      // A client that was killed has sent a part, which no server delivers.
      if (message === undefined) return done(new Error('closed'))
      mails.push({ to: envelope.rcptTo.map(({ address }) => address), message })
      done()
    },
  })
  server.on('error', () => undefined)
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', () => ready()))
  const { port } = server.server.address() as AddressInfo
  return {
    mails: mails as readonly Mail[],
    url: `smtp://127.0.0.1:${port}`,
    close: () => new Promise<void>((done) => server.close(() => done())),
  }
}
