"""What `handler_subprocess.py` runs unless it is told otherwise: it stands where an agent's own program would.

It reads one run from standard input, goes on with the conversation of the run's session, a file here, and answers in
JSON. What it says on standard error is kept when it fails.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

CONVERSATIONS = Path(os.environ.get("OFFICE_EXAMPLE_DIRECTORY") or Path(tempfile.gettempdir()) / "office-conversations")


def main() -> None:
    """Take one turn."""
    given = json.load(sys.stdin)
    # Without a task there is no session: the run has a conversation of its own.
    conversation = given["session"]["id"] if given["session"] else given["run"]["id"]
    CONVERSATIONS.mkdir(parents=True, exist_ok=True)
    file = CONVERSATIONS / f"{conversation}.jsonl"
    turns = file.read_text().splitlines() if file.exists() else []
    # Started a second time for one run, it does not say the same thing twice.
    if given["run"]["id"] not in [json.loads(turn)["run_id"] for turn in turns]:
        turns.append(json.dumps({"run_id": given["run"]["id"], "reason": given["run"]["reason"]}))
        file.write_text("\n".join(turns) + "\n")
    json.dump({"conversation": conversation, "turns": len(turns)}, sys.stdout)


if __name__ == "__main__":
    main()
