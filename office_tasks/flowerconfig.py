"""Flower's configuration: `celery --app=office_tasks flower --conf=…/flowerconfig.py`, or `office flower`.

Flower runs this file by itself and takes the options from its names. `FLOWER_*` and the command line win.
"""

from office_tasks.watching.prepare import prepare as _prepare

globals().update(_prepare())
