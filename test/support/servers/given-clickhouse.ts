const { WEIR_CLICKHOUSE_URL: url } = process.env

/** Whether the environment names a ClickHouse: it has one database `weir`, on which the files of a tier take turns. */
export const isGiven = Boolean(url)

/** What workers see of it: it is for the tests that ask for one, and not for every program that they start. */
export const givenEnv = url ? { WEIR_CLICKHOUSE_URL: '', WEIR_TEST_CLICKHOUSE: url } : {}
