"""Holds a stack until its input ends; a process of its own, so that a test can kill it."""

import json
import os
import sys
from pathlib import Path

from office_tasks.devstack import DevStack, spawn

if "outlived" in sys.argv:  # what a system without PR_SET_PDEATHSIG does
    spawn.TETHER = Path(sys.argv[-1])
try:
    with DevStack(Path(sys.argv[1]), durable=False) as stack:
        if "fork" in sys.argv:
            child = os.fork()
            if child == 0:
                stack.stop()
                os._exit(0)
            os.waitpid(child, 0)
        print(json.dumps([stack.postgres.pid, stack.redis.pid]), flush=True)
        sys.stdin.read()
except KeyboardInterrupt:
    print("interrupted", flush=True)
