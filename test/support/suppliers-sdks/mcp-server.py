"""A server of the Model Context Protocol over HTTP with one tool: python3 mcp-server.py PORT."""

import sys

from mcp.server import MCPServer

server = MCPServer("weather")


@server.tool()
def weather(city: str) -> str:
    return f"sunny in {city}"


server.run("streamable-http", port=int(sys.argv[1]))
