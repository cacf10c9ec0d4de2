-- What was invoiced, to whom, for which month? One row per invoice, written once and only read afterwards: `document` is
-- the invoice, to the byte. The id follows from subject and period and is the token of its insert: of two consoles that
-- close one month at the same time, the second changes nothing. Invoices are never deleted.
CREATE TABLE IF NOT EXISTS weir.invoices
(
    id        UUID,
    subject   String,
    period    LowCardinality(String) COMMENT 'the month in which the period begins: 2026-11',
    from_ts   DateTime64(3, 'UTC')   COMMENT 'first instant of the period',
    to_ts     DateTime64(3, 'UTC')   COMMENT 'first instant after it',
    closed_at DateTime64(3, 'UTC'),
    sha256    FixedString(64)        COMMENT 'of the document, in hex',
    document  String                 COMMENT 'canonical JSON (RFC 8785)'
)
ENGINE = MergeTree
ORDER BY (subject, period)
SETTINGS non_replicated_deduplication_window = 10000;

-- What was invoiced line by line? A line of a price list, or an adjustment of an earlier period.
CREATE VIEW IF NOT EXISTS weir.invoice_lines AS
SELECT
    i.id AS id,
    i.subject AS subject,
    i.period AS period,
    line.1 AS kind,
    line.2 AS name,
    line.3 AS currency,
    line.4 AS quantity,
    line.5 AS amount
FROM weir.invoices AS i
ARRAY JOIN arrayConcat(
    arrayMap(
        one -> ('line', JSONExtractString(one, 'name'), JSONExtractString(i.document, 'prices', 'currency'),
                JSONExtractString(one, 'quantity'), JSONExtractString(one, 'amount')),
        JSONExtractArrayRaw(i.document, 'quote', 'lines')),
    arrayMap(
        one -> ('adjustment', JSONExtractString(one, 'for_period'), JSONExtractString(one, 'currency'),
                JSONExtractString(one, 'units'), JSONExtractString(one, 'amount')),
        JSONExtractArrayRaw(i.document, 'adjustments'))) AS line;
