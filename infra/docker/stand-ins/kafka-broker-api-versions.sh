#!/bin/sh
# The script of that name in the vendor's image, which docker-compose.yml's health check calls.
exec java -Xmx64m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp '/opt/kafka/libs/*' org.apache.kafka.tools.BrokerApiVersionsCommand "$@"
