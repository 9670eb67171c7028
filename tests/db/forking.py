"""Children forked from a process that has used the database: what each of them got for its own calls."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Engine, text

from db.engine import autocommit
from office_tasks.admission import admit
from tests.support import Board, after


def mixed(child: int, n: int):
    """Return one of a child's wakes, keyed or not, seen before or not; its payload names whose it is."""
    payload = {"child": child, "n": n, "task_id": f"T{child}-{n}", "actor_type": "agent" if n % 4 else "user"}
    key = f"{child}:{n if n % 10 else 'again'}" if n % 2 == 0 else None
    return Board.wake(reason=("task_assigned", "task_comment")[n % 2], payload=payload, key=key)


def admissions(engine: Engine, child: int, count: int, threads: int) -> dict:
    """Admit `count` mixed wakes; return the answers beside what was asked, and the backends that served them."""
    backends = set()

    def one(n: int) -> tuple:
        with autocommit(engine) as connection:
            backends.add(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        asked = mixed(child, n)
        answer = admit(engine, asked, instant=after(seconds=10 * n))
        return answer.wake_id, str(answer.outcome), answer.run_id, n

    with ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(one, range(count)))
    return {"pid": os.getpid(), "backends": backends, "answers": answers, "child": child}


def in_children(context, engine: Engine, children: int, count: int, threads: int = 1) -> list[dict]:
    """Fork `children` processes by `context`, each working on the parent's engine; return what they sent back."""
    pipes = [context.Pipe(False) for _ in range(children)]

    def work(child: int, pipe) -> None:
        try:
            pipe.send(admissions(engine, child, count, threads))
        except Exception as error:  # noqa: BLE001 - the parent must hear of it
            pipe.send(repr(error))
        # No clean-up of the parent's: pytest's own would run in the child.
        os._exit(0)

    processes = [context.Process(target=work, args=(child, pipe[1])) for child, pipe in enumerate(pipes)]
    for process in processes:
        process.start()
    try:
        sent = []
        for child, (reader, _) in enumerate(pipes):
            if not reader.poll(60):
                raise TimeoutError(f"child {child} hangs")
            sent.append(reader.recv())
        return sent
    finally:
        for process in processes:
            process.join(5)
            if process.is_alive():
                process.terminate()
        for reader, writer in pipes:
            reader.close()
            writer.close()
