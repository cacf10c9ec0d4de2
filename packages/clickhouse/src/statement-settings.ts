import type { ClickHouseSettings } from '@clickhouse/client'

/**
 * The settings that every statement is sent with, because its answer, or the rows that it stores, depends on them, and
 * the profile of a user may have others. Each is a default of ClickHouse 26.7, which `compatibility` would change, but
 * for integers of 64 bits and `async_insert`. ClickHouse 25.3 knows all of them: it refuses a statement with a setting
 * that it does not know. A statement that needs another value says so itself. Bounds, such as `max_execution_time`, are
 * the operator's.
 */
export const statementSettings: ClickHouseSettings = {
  compatibility: '',

  // Which rows an answer has, and what they are called.
  enable_analyzer: 1,
  enable_positional_arguments: 1,
  prefer_column_name_to_alias: 0,
  asterisk_include_alias_columns: 0,
  asterisk_include_materialized_columns: 0,
  apply_deleted_mask: 1,
  final: 0,
  limit: '0',
  offset: '0',
  extremes: 0,
  union_default_mode: '',
  use_query_cache: 0,
  // Where tables are not replicated, each replica would answer for all of them.
  enable_parallel_replicas: 0,

  // What joins and aggregates make of rows that are not there.
  join_use_nulls: 0,
  join_default_strictness: 'ALL',
  any_join_distinct_right_table_keys: 0,
  transform_null_in: 0,
  group_by_use_nulls: 0,
  cast_keep_nullable: 0,
  aggregate_functions_null_for_empty: 0,
  empty_result_for_aggregation_by_empty_set: 0,
  count_distinct_implementation: 'uniqExact',

  // A bound of the operator ends a statement with an error, and never with a part of its answer.
  distinct_overflow_mode: 'throw',
  group_by_overflow_mode: 'throw',
  join_overflow_mode: 'throw',
  read_overflow_mode: 'throw',
  read_overflow_mode_leaf: 'throw',
  result_overflow_mode: 'throw',
  set_overflow_mode: 'throw',
  sort_overflow_mode: 'throw',
  timeout_overflow_mode: 'throw',
  timeout_overflow_mode_leaf: 'throw',
  transfer_overflow_mode: 'throw',

  // How times are read and written.
  session_timezone: '',
  // Times of records and of ISO 8601.
  date_time_input_format: 'best_effort',
  date_time_output_format: 'simple',
  date_time_overflow_behavior: 'ignore',
  date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands: 0,
  enable_extended_results_for_datetime_functions: 0,
  formatdatetime_f_prints_single_zero: 0,
  formatdatetime_f_prints_scale_number_of_digits: 0,
  formatdatetime_format_without_leading_zeros: 0,
  formatdatetime_parsedatetime_m_is_month_name: 1,

  // How JSON is read and written.
  // A client would round them.
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_64bit_floats: 0,
  output_format_json_quote_decimals: 0,
  output_format_json_quote_denormals: 0,
  output_format_json_array_of_rows: 0,
  output_format_json_named_tuples_as_objects: 1,
  output_format_json_skip_null_value_in_named_tuples: 0,
  output_format_decimal_trailing_zeros: 0,
  input_format_allow_errors_num: '0',
  input_format_allow_errors_ratio: 0,
  input_format_defaults_for_omitted_fields: 1,
  input_format_import_nested_json: 0,
  input_format_json_defaults_for_missing_elements_in_named_tuple: 1,
  input_format_json_ignore_unknown_keys_in_named_tuple: 1,
  input_format_json_named_tuples_as_objects: 1,
  input_format_null_as_default: 1,
  // A record field that this version does not know must not stop the pipeline; the record itself stays in Kafka.
  input_format_skip_unknown_fields: 1,

  // Statements that write, and what they create.
  // A block is there, or remembered, when its insert is answered.
  async_insert: 0,
  insert_deduplicate: 1,
  insert_null_as_default: 1,
  deduplicate_blocks_in_dependent_materialized_views: 1,
  materialized_views_ignore_errors: 0,
  optimize_on_insert: 1,
  enable_lightweight_delete: 1,
  data_type_default_nullable: 0,
  flatten_nested: 1,
  default_materialized_view_sql_security: 'DEFINER',
}
