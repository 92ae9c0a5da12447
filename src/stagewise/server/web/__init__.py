"""The HTTP API and the web page of the server."""
