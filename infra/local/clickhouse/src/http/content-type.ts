const json = ['JSON', 'JSONStrings', 'JSONCompact', 'JSONCompactStrings', 'JSONColumns', 'JSONColumnsWithMetadata']
const lines = [
  'JSONEachRow',
  'JSONLines',
  'NDJSON',
  'JSONStringsEachRow',
  'JSONCompactEachRow',
  'JSONCompactStringsEachRow',
]
const binary = /^(Native|RowBinary|Parquet|Arrow|ORC|Avro|MsgPack|Protobuf|CapnProto|BSON|RawBLOB|Npy|MySQLWire)/

/** The media type that ClickHouse gives a format. */
export function contentType(format: string): string {
  if (json.includes(format)) return 'application/json; charset=UTF-8'
  if (lines.includes(format) || format.startsWith('JSON')) return 'application/x-ndjson; charset=UTF-8'
  if (/^(TSV|TabSeparated)/.test(format)) return 'text/tab-separated-values; charset=UTF-8'
  if (format.startsWith('CSVWithNames')) return 'text/csv; charset=UTF-8; header=present'
  if (format.startsWith('CSV')) return 'text/csv; charset=UTF-8; header=absent'
  if (format === 'XML') return 'application/xml; charset=UTF-8'
  return binary.test(format) ? 'application/octet-stream' : 'text/plain; charset=UTF-8'
}
