-- How few bytes may a row take on disk without making inserts slower? `npm run bench -- codecs` measures every column under every
-- codec that suits it. Ids are half random, and limits are text and numbers in turn: level 3 makes a fifth less of them than
-- level 1, for no time that could be measured. Numbers that rise along the sorting order take a Delta, others gain nothing by one.
-- Parts that are there already are written anew when they are merged.
ALTER TABLE weir.decisions
    MODIFY COLUMN id CODEC(ZSTD(3)),
    MODIFY COLUMN subject CODEC(ZSTD(3)),
    MODIFY COLUMN key_id CODEC(ZSTD(3)),
    MODIFY COLUMN plan CODEC(ZSTD(1)),
    MODIFY COLUMN route CODEC(ZSTD(1)),
    MODIFY COLUMN method CODEC(ZSTD(1)),
    MODIFY COLUMN outcome CODEC(ZSTD(1)),
    MODIFY COLUMN reason CODEC(ZSTD(1)),
    MODIFY COLUMN mode CODEC(ZSTD(1)),
    MODIFY COLUMN charged CODEC(ZSTD(1)),
    MODIFY COLUMN denied_by CODEC(ZSTD(1)),
    MODIFY COLUMN cost CODEC(Delta, ZSTD(1)),
    MODIFY COLUMN count CODEC(Delta, ZSTD(1)),
    MODIFY COLUMN limits CODEC(ZSTD(3)),
    MODIFY COLUMN journal CODEC(ZSTD(1)),
    MODIFY COLUMN seq CODEC(Delta, ZSTD(1)),
    MODIFY COLUMN partition CODEC(ZSTD(1)),
    MODIFY COLUMN topic_id CODEC(ZSTD(1)),
    MODIFY COLUMN corrects CODEC(ZSTD(1)),
    MODIFY COLUMN adjustment CODEC(ZSTD(1));

ALTER TABLE weir.outcomes
    MODIFY COLUMN id CODEC(ZSTD(3)),
    MODIFY COLUMN subject CODEC(ZSTD(3)),
    MODIFY COLUMN route CODEC(ZSTD(1)),
    MODIFY COLUMN method CODEC(ZSTD(1)),
    MODIFY COLUMN status CODEC(ZSTD(1)),
    MODIFY COLUMN duration_ms CODEC(ZSTD(1)),
    MODIFY COLUMN bytes_in CODEC(ZSTD(1)),
    MODIFY COLUMN bytes_out CODEC(ZSTD(1)),
    MODIFY COLUMN upstream CODEC(ZSTD(1)),
    MODIFY COLUMN error CODEC(ZSTD(1)),
    MODIFY COLUMN journal CODEC(ZSTD(1)),
    MODIFY COLUMN seq CODEC(Delta, ZSTD(1)),
    MODIFY COLUMN partition CODEC(ZSTD(1)),
    MODIFY COLUMN topic_id CODEC(ZSTD(1));
