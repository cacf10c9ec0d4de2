/** Codecs worth trying for a column, by its type. The first is what a column without a codec has. */
export function candidatesFor(type: string): readonly string[] {
  const general = ['LZ4', 'ZSTD(1)', 'ZSTD(3)']
  if (/^(UInt|Int|DateTime)/.test(type)) {
    const numbers = ['Delta, LZ4', 'Delta, ZSTD(1)', 'DoubleDelta, ZSTD(1)', 'T64, ZSTD(1)']
    return [...general, ...numbers]
  }
  return type.startsWith('Float') ? [...general, 'Gorilla, ZSTD(1)', 'FPC, ZSTD(1)'] : general
}
