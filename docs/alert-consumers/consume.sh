#!/bin/sh
# Shows Weir's alerts with kcat, a line each: BROKERS=host:port sh consume.sh
# Where Kafka asks for a password, KCAT_CONFIG names a file with the lines security.protocol=SASL_SSL, sasl.mechanism=SCRAM-SHA-512,
# sasl.username=…, sasl.password=… and ssl.ca.location=…. Kafka 4 refuses SCRAM of a librdkafka before 2.6.1 (kcat -V), such as that of
# Debian 12; sasl.mechanism=PLAIN works there.
# kcat commits by itself, so that what was not shown yet when this is killed is not shown again: it is for looking. An alert may come
# again, under the same id: each is shown once.
tab=$(printf '\t')
handled=' '
kcat -b "${BROKERS:-127.0.0.1:9092}" -G alert-example-kcat -X auto.offset.reset=earliest -q -u -f '%h\t%s\n' weir.alerts.v1 |
  while IFS= read -r line; do
    headers=${line%%"$tab"*}
    case "$headers," in *ce_id=*,ce_source=/weir,*) ;; *) continue ;; esac
    id=${headers#*ce_id=}
    id=${id%%,*}
    case "$handled" in *" $id "*) continue ;; esac
    handled="$handled$id "
    printf '%s\n' "$line"
  done
