"""A shop whose stock and shelves agents look after: what a producer's code may look like (test_shop.py tests it)."""

from celery import Celery
from sqlalchemy import Engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from office_tasks import assign_task, enqueue, queue_run

till = Celery("till")  # an app of the shop's own, which sends by name


class Base(DeclarativeBase):
    """The tables of the shop, in the office's database."""


class Order(Base):
    """An order; somebody must see whether what it asks for is there."""

    __tablename__ = "shop_orders"

    id: Mapped[str] = mapped_column(primary_key=True)


def place_order(engine: Engine, order_id: str) -> None:
    """Take the order and have ada check the stock: both, or neither."""
    with Session(engine) as session:
        session.add(Order(id=order_id))
        enqueue(session, "ada", "stock_check", {"order": order_id}, f"stock:{order_id}")
        session.commit()


def report(subject: str) -> None:
    """Have ada look at what a customer reports."""
    queue_run.delay("ada", "customer_report", {"subject": subject})


def hand_on(task_id: str, giver: str, taker: str) -> str:
    """Let an agent hand a task on to another one; return what came of waking that one."""
    outcome: str = assign_task.delay(task_id, taker, giver).get()["wakes"][0]["outcome"]
    return outcome


def ring(reason: str) -> None:
    """Wake ada from the till, which does not import the office."""
    till.send_task("office.queue_run", ["ada", reason], queue="admission")
