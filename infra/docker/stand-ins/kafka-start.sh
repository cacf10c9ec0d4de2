#!/bin/sh
# What the vendor's image does with its environment: KAFKA_NODE_ID=1 becomes node.id=1, and an empty folder is formatted.
set -eu
properties=/tmp/server.properties
env | sed -n 's/^KAFKA_\([A-Z_]*\)=/\1=/p' | while IFS='=' read -r name value; do
  printf '%s=%s\n' "$(printf %s "$name" | tr 'A-Z_' 'a-z.')" "$value"
done >"$properties"
# To standard output, where those who wait for "Kafka Server started" read it.
cat >/tmp/log4j2.properties <<'END'
status = error
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d{ISO8601} %p %c{1} %m%n
rootLogger.level = info
rootLogger.appenderRef.stdout.ref = stdout
END
set -- -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile=/tmp/log4j2.properties -cp '/opt/kafka/libs/*'
java "$@" kafka.tools.StorageTool format --ignore-formatted -t "$CLUSTER_ID" -c "$properties"
exec java -Xms128m -Xmx640m "$@" kafka.Kafka "$properties"
