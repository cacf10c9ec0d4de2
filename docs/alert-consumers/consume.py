"""Reads Weir's alerts with confluent-kafka: pip install confluent-kafka, then BROKERS=host:port python3 consume.py
Where Kafka asks for a password, KAFKA_USERNAME and KAFKA_PASSWORD too, and in KAFKA_CA the file of an authority that the system does not know."""

import json
import os
import sys

from confluent_kafka import Consumer, KafkaException

login = {}
if "KAFKA_USERNAME" in os.environ:
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": os.environ["KAFKA_USERNAME"],
        "sasl.password": os.environ["KAFKA_PASSWORD"],
        **({"ssl.ca.location": os.environ["KAFKA_CA"]} if "KAFKA_CA" in os.environ else {}),
    }
consumer = Consumer(
    {
        **login,
        "bootstrap.servers": os.environ.get("BROKERS", "127.0.0.1:9092"),
        # A group of its own for each system that wants all alerts.
        "group.id": "alert-example-python",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
)
consumer.subscribe(["weir.alerts.v1"])
# An alert may come again, under the same id. In earnest this is a table with the id as its key.
handled = set()


def read_alert(message):
    """None for what is no alert: the topic is public, and others may have written there."""
    headers = {name: value or b"" for name, value in message.headers() or []}
    try:
        if headers.get("ce_source") != b"/weir":
            return None
        texts = {name: headers["ce_" + name].decode() for name in ("id", "type", "subject")}
        return {**texts, "data": json.loads(message.value())}
    except (KeyError, TypeError, ValueError) as error:
        print("passed over:", error, file=sys.stderr)
        return None


while True:
    message = consumer.poll(1.0)
    if message is None:
        continue
    if message.error():
        print(message.error(), file=sys.stderr)
        continue
    alert = read_alert(message)
    if alert is not None and alert["id"] not in handled:
        print(json.dumps(alert), flush=True)
        handled.add(alert["id"])
    try:
        # Only now: killed before this, the alert comes again.
        consumer.commit(message, asynchronous=False)
    except KafkaException as error:
        # The partition is another's now, which reads it again.
        print(error, file=sys.stderr)
