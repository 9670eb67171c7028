"""The demo: a small office, real workers, and every outcome and refusal that a producer can meet; then its runs' ends.

What must have happened long ago is asked for in this process, at an instant in the past, through the same code; all
else goes to the worker by `.delay()`. Each answer is compared with what the contract says, and with the wake's row in
Postgres. What was queued meanwhile a second worker then executes, and each run's row is compared with the contract too.
"""

from office_tasks.demo.run import run

__all__ = ["run"]
