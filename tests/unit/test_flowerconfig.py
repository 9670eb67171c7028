"""What our Flower configuration says, and that the pinned Flower still has the places it is put into."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from flower.urls import settings

from office_tasks.watching.login import are_logins
from office_tasks.watching.pages import ago, told, with_tab
from tests.nodes.engine import ROOT
from tests.nodes.worker import inherited

PROGRAM = """
import json, sys
from tornado.options import options
import flower.command
flower.command.apply_env_options()
flower.command.apply_options("flower", sys.argv[1:])
shown = ("address", "natural_time", "tasks_columns", "purge_offline_workers", "read_only", "persistent", "basic_auth")
print(json.dumps({name: getattr(options, name) for name in shown}))
"""
CONFIGURATION = "--conf=office_tasks/flowerconfig.py"


def options(*words: str, **env: str) -> dict[str, object]:
    """Return what Flower takes from its environment, our file and its command line, in that process of its own."""
    ours = {name: value for name, value in inherited().items() if not name.startswith("FLOWER_")}
    login = {"FLOWER_BASIC_AUTH": "me:secret"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, CONFIGURATION, *words],
        cwd=ROOT,
        env={**ours, **login, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_what_nobody_chose_is_ours():
    assert options() == {
        "address": "127.0.0.1",
        "natural_time": True,
        "tasks_columns": "name,state,result,runtime,received,args,kwargs,uuid",
        "purge_offline_workers": 600,
        "read_only": False,
        "persistent": False,
        "basic_auth": ["me:secret"],
    }


def test_the_environment_and_the_command_line_win():
    found = options("--tasks_columns=name", FLOWER_ADDRESS="0.0.0.0", FLOWER_NATURAL_TIME="no", FLOWER_READ_ONLY="yes")
    assert (found["address"], found["natural_time"], found["read_only"]) == ("0.0.0.0", False, True)
    assert (found["tasks_columns"], found["purge_offline_workers"]) == ("name", 600)


def test_our_tab_is_the_last_of_flowers_own():
    theirs = (Path(settings["template_path"]) / "navbar.html").read_text()
    ours = with_tab(theirs)
    assert [name for name in ("Workers<", "Tasks<", "Broker<", "Admissions<", "</ul>") if name in ours] == sorted(
        ("Workers<", "Tasks<", "Broker<", "Admissions<", "</ul>"), key=ours.index
    )


@pytest.mark.parametrize(
    ("given", "are"),
    [
        (["me:secret"], True),
        (["me:secret", "you:se:cret"], True),
        ([], False),
        ([""], False),
        (["me"], False),
        ([":secret"], False),
        (["me:secret", "you:"], False),
    ],
)
def test_a_login_is_a_user_and_a_password(given, are):
    assert are_logins(given) is are


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7_200, "2 h"), (200_000, "2 d"), (-1, "0 s")]
)
def test_a_length_of_time_in_words(seconds, said):
    assert ago(seconds) == said


def test_what_a_job_did_in_a_line():
    assert told({"backing_off": 1, "lock": "free"}) == "backing off 1, lock free"
    assert told({}) == "nothing"
