"""Lists and calls tools through Weir: python3 mcp-client.py URL KEY MODE CALLS, a line of JSON for each step."""

import asyncio
import json
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client


async def main(url, key, mode, calls):
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
    async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        print(json.dumps([tool.name for tool in (await client.list_tools()).tools]))
        for _ in range(int(calls)):
            try:
                result = await client.call_tool("weather", {"city": "Paris"})
                print(json.dumps(result.content[0].text))
            except MCPError as error:
                print(json.dumps({"code": error.error.code, "message": error.error.message}))


asyncio.run(main(*sys.argv[1:]))
