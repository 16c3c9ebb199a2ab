"""Drives many bare kernels at once, each with a cell at equal intervals, for comparison.

    crowd_peer.py ARGV N

Answers {"code": …, "times": n, "interval": s} with the milliseconds that all cells took.
"""
import concurrent.futures
import json
import sys
import time

import bare


def work(kernel, task, first):
    latencies = []
    for i in range(task["times"]):
        time.sleep(max(0, first + i * task["interval"] - time.perf_counter()))
        start = time.perf_counter()
        bare.execute(kernel[1], task["code"])
        latencies.append((time.perf_counter() - start) * 1000)
    return latencies


argv, n = json.loads(sys.argv[1]), int(sys.argv[2])
kernels = []
try:
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        for _ in range(n):
            kernels.append(bare.start(argv))
        print("ready", flush=True)
        for line in sys.stdin:
            task = json.loads(line)
            first = time.perf_counter() + 0.5
            parts = [pool.submit(work, kernel, task, first + i * task["interval"] / n) for i, kernel in enumerate(kernels)]
            print(json.dumps([ms for part in parts for ms in part.result()]), flush=True)
finally:
    bare.stop(*kernels)
