"""Commit a row of your own and an assignment together: both happen, or neither (PRO-6.3).

    OFFICE_DATABASE_URL=… OFFICE_BROKER_URL=… python examples/assign_in_session.py TASK AGENT

The business table lives in the office's database. After the commit a worker is asked to admit the wake; should that
message be lost, the relay (`recovery.relay_owed`, run by beat) admits it within seconds.
"""

import sys

from sqlalchemy import String, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from office_tasks import app, assign


class Base(DeclarativeBase):
    """The tables of the business."""


class Order(Base):
    """An order that somebody must look at."""

    __tablename__ = "example_orders"

    id: Mapped[str] = mapped_column(String, primary_key=True)
    task_id: Mapped[str]


def take_order(session: Session, order_id: str, task_id: str, agent_id: str) -> str:
    """Record the order and hand its task to the agent, in one transaction; return the id of the mutation."""
    session.add(Order(id=order_id, task_id=task_id))
    mutation_id = assign(session, task_id, agent_id)
    session.commit()
    return mutation_id


if __name__ == "__main__":
    engine = create_engine(app.office.settings.database_url.get_secret_value())
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        task, agent = sys.argv[1:3]
        print(take_order(session, f"order-of-{task}", task, agent))
