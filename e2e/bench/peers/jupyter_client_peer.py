"""Drives a bare kernel with Python's own jupyter_client, for comparison.

    jupyter_client_peer.py ARGV

ARGV is the kernel's, as JSON.
"""
import json
import sys

import bare
import lines

manager, client = bare.start(json.loads(sys.argv[1]))
try:
    lines.serve(lambda code: bare.execute(client, code))
finally:
    bare.stop((manager, client))
