/** Reads the values of Kafka's protocol one after the other. */
export class ByteReader {
  readonly bytes: Buffer
  at: number

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes
    this.at = at
  }

  skip(bytes: number): void {
    this.at += bytes
  }

  int16(): number {
    this.at += 2
    return this.bytes.readInt16BE(this.at - 2)
  }

  int32(): number {
    this.at += 4
    return this.bytes.readInt32BE(this.at - 4)
  }

  /** A number of the compact encoding. By multiplication: the distance of two times may be beyond 32 bits. */
  unsignedVarint(): number {
    const { bytes } = this
    let byte = bytes[this.at++] ?? 0
    let value = byte & 0x7f
    for (let scale = 0x80; byte >= 0x80; scale *= 0x80) {
      byte = bytes[this.at++] ?? 0
      value += (byte & 0x7f) * scale
    }
    return value
  }

  /** A zigzag number, as the message format 2 has them. */
  varint(): number {
    const value = this.unsignedVarint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  text(length: number): string {
    this.at += length
    return this.bytes.toString('utf8', this.at - length, this.at)
  }

  /** A text behind its length of two bytes; an absent one is empty. */
  shortText(): string {
    return this.text(Math.max(0, this.int16()))
  }

  /** A compact text: its length is one less than the number before it; an absent one is empty. */
  compactText(): string {
    return this.text(Math.max(0, this.unsignedVarint() - 1))
  }

  uuid(): string {
    this.at += 16
    const hex = this.bytes.toString('hex', this.at - 16, this.at)
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  }

  /** A list behind its length of four bytes. */
  list<T>(one: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int32()) }, one)
  }

  /** Skips tagged fields: a number of them, then each with its tag and its length. */
  skipTags(): void {
    for (let left = this.unsignedVarint(); left > 0; left -= 1) {
      this.unsignedVarint()
      this.skip(this.unsignedVarint())
    }
  }

  /** A compact list. Tags follow each structure in it, and no plain number. */
  compactList<T>(one: () => T, hasTags = true): T[] {
    return Array.from({ length: Math.max(0, this.unsignedVarint() - 1) }, () => {
      const value = one()
      if (hasTags) this.skipTags()
      return value
    })
  }
}
