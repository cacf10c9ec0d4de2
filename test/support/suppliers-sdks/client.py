"""Asks one supplier's API by its own SDK, which gets its address and its key from the environment alone.

python3 client.py openai|anthropic CASES: a line of JSON for each case.
"""

import hashlib
import json
import sys
import time

import httpx2

exchanges = []


class Hashed(httpx2.SyncByteStream):
    """The bytes of a response as they come, with their hash."""

    def __init__(self, stream, exchange):
        self.stream, self.exchange, self.hash = stream, exchange, hashlib.sha256()

    def __iter__(self):
        for piece in self.stream:
            self.hash.update(piece)
            # OpenAI's SDK stops at the last event.
            self.exchange["sha256"] = self.hash.hexdigest()
            yield piece

    def close(self):
        self.stream.close()


class Watched(httpx2.HTTPTransport):
    def handle_request(self, request):
        at = time.monotonic() * 1000
        response = super().handle_request(request)
        headers = response.headers
        exchange = {"at": at, "status": response.status_code, "retryAfter": headers.get("retry-after")}
        exchange["decision"] = headers.get("weir-decision")
        exchanges.append(exchange)
        stream = Hashed(response.stream, exchange)
        return httpx2.Response(response.status_code, headers=headers, stream=stream, extensions=response.extensions)


def ask(client, case):
    args = dict(case["args"])
    if "fill" in case:
        args["messages"] = [{"role": "user", "content": "x" * case["fill"]}]
    call = client
    for name in case["call"].split("."):
        call = getattr(call, name)
    if not case["call"].endswith(".stream"):
        return call(**args)
    with call(**args) as stream:
        for name in ("get_final_completion", "get_final_message", "get_final_response"):
            if hasattr(stream, name):
                return getattr(stream, name)()


def main():
    sdk = __import__(sys.argv[1])
    create = sdk.OpenAI if sys.argv[1] == "openai" else sdk.Anthropic
    client = create(http_client=sdk.DefaultHttpxClient(transport=Watched()))
    for case in json.loads(sys.argv[2]):
        exchanges.clear()
        said = {"name": case["name"]}
        try:
            own = client.with_options(default_headers=case["headers"], api_key=case["key"])
            said["result"] = ask(own, case).model_dump(mode="json", warnings=False)
        except sdk.APIStatusError as error:
            known = [one.__name__ for one in type(error).__mro__ if one.__module__.startswith(sys.argv[1])]
            said["error"] = {"types": known, "status": error.status_code, "message": error.message}
        except Exception as error:
            said["error"] = {"types": [type(error).__name__], "status": 0, "message": repr(error)}
        print(json.dumps({**said, "exchanges": exchanges}), flush=True)


main()
