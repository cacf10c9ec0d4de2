#!/bin/sh
# Shows Weir's alerts with kcat, a line each: BROKERS=host:port sh consume.sh
# An alert may come again, under the same id: awk lets each through once.
kcat -b "${BROKERS:-127.0.0.1:9092}" -G alert-example-kcat -X auto.offset.reset=earliest -q -u -f '%h %s\n' weir.alerts.v1 |
  awk -F 'ce_id=' '/ce_source=\/weir/ { split($2, id, ","); if (!handled[id[1]]++) { print; fflush() } }'
