"""Clients of services: chat completions over HTTP, one call at a time, and messages to people.

What belongs here: endpoints and keys, the transport, requests and what came of them, waiting and trying again for
those who may. What does not: what is asked and what an answer is worth (``policies``, judges). A key is sent in a
header and is in no message, log or answer.
"""
