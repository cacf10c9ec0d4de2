"""Reads Weir's alerts with confluent-kafka: pip install confluent-kafka, then BROKERS=host:port python3 consume.py"""

import json
import os
import sys

from confluent_kafka import Consumer

consumer = Consumer(
    {
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

while True:
    message = consumer.poll(1.0)
    if message is None:
        continue
    if message.error():
        print(message.error(), file=sys.stderr)
        continue
    headers = {name: value.decode() for name, value in message.headers() or []}
    alert_id = headers.get("ce_id")
    if headers.get("ce_source") == "/weir" and alert_id is not None and alert_id not in handled:
        alert = {"id": alert_id, "type": headers["ce_type"], "subject": headers["ce_subject"]}
        print(json.dumps({**alert, "data": json.loads(message.value())}), flush=True)
        handled.add(alert_id)
    # Only now: killed before this, the alert comes again.
    consumer.commit(message, asynchronous=False)
