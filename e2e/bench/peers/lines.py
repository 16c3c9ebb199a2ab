"""The protocol between the benchmark and its peers: a line of JSON in, a line of JSON out."""
import json
import sys
import time


def serve(run):
    """Answers {"code": …, "times": n} with the milliseconds that each of n calls of run(code) took."""
    print("ready", flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        latencies = []
        for _ in range(task["times"]):
            start = time.perf_counter()
            run(task["code"])
            latencies.append((time.perf_counter() - start) * 1000)
        print(json.dumps(latencies), flush=True)
