"""What the documents mention in passing is there: commands with their options, files, make's targets."""

from __future__ import annotations

import itertools
import re
import shlex

import pytest
import typer.main

from office_tasks.arguments import ARGUMENTS
from office_tasks.cli.main import office
from tests.documents.pages import FENCE, ROOT, documents, steps

SPAN = re.compile(r"`([^`\n]+)`")
PROGRAMS = ("office", "make", "celery", "pytest", "python", "pip", "psql", "curl", "docker compose", "apt-get")
TYPED = re.compile(rf"(?:\w+=\S+ )*(?:{'|'.join(PROGRAMS)}) \S.*|\.ci/\w+")
BEFORE = re.compile(r"(?:env (?:-u \w+ )+)?(?:\w+=\S+ )*")
# Which commands of sentences stand in no fence, and what runs them.
ELSEWHERE = {
    "make clean": "tests/documents/test_walk.py::test_whoever_follows_the_documents_ends_in_flower",
    "office demo": "tests/cli/test_demo.py::test_it_shows_every_outcome_and_gate_and_leaves_nothing_running",
    "celery inspect": "tests/canary/test_starting.py::test_a_broker_that_refuses_hears_no_secret_told",
    "python celery": "tests/canary/test_starting.py::test_processes_that_start_say_no_secret",
    "apt-get install chromium": ".ci/run",
    ".ci/compose": ".ci/run",
    ".ci/run": ".ci/run",  # what runs all of these
}


def prose(name):
    return FENCE.sub("", (ROOT / name).read_text())


@pytest.mark.parametrize("name", documents())
def test_commands_in_passing_are_commands(name):
    """`office run cancel <run>` names a command, and each `--option` behind it is one of its options."""
    for span in SPAN.findall(prose(name)):
        words = shlex.split(re.sub(r"<[^>]*>|…|\|\S*", "X", span.replace("\\|", "|")).replace("'", ""))
        if words[:1] != ["office"] or len(words) == 1:
            continue
        command = typer.main.get_command(office)
        rest = words[1:]
        while rest and (inner := getattr(command, "commands", {}).get(rest[0].partition("|")[0])):
            command, rest = inner, rest[1:]
        assert command is not typer.main.get_command(office), span
        options = {option for parameter in command.params for option in parameter.opts}
        passed_on = command.context_settings.get("ignore_unknown_options")
        assert passed_on or all(word in options for word in rest if word.startswith("--")), span


def test_commands_in_passing_are_run():
    """Each stands in a fence too, maybe with other arguments; the rest a test or `.ci/run` runs, and none but those."""
    fences = [plain(step.text) for name in documents() for step in steps(name) if step.kind == "typed"]
    fences += [BEFORE.sub("", command) for command in fences]
    spans = {span.replace("\\|", "|") for name in documents() for span in SPAN.findall(prose(name))}
    asked = {command for span in spans if TYPED.fullmatch(span) for command in same(span)}
    assert {one for one in asked if not any(f"{typed} ".startswith(f"{one} ") for typed in fences)} == set(ELSEWHERE)


@pytest.mark.parametrize("place", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_runs_them_is_there(place):
    file, _, name = place.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text() or not name


def plain(command):
    """Return a command without what names the app, or Python's module as one."""
    return re.sub(r" (?:-m|-A office_tasks|--app=office_tasks)(?= )", "", command)


def same(span):
    """Return the commands that a span names, each without its arguments: `office step create|list` names two."""
    words = re.match(r"(?:[\w.-]+=\S+ )*[\w./-]+(?: [a-z][\w./|-]*)*", plain(span))[0].split(" ")[:3]
    return [" ".join(each) for each in itertools.product(*(word.split("|") for word in words))]


@pytest.mark.parametrize("name", documents())
def test_targets_in_passing_are_targets(name):
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"`make ([a-z-]+)", prose(name)):
        assert target in targets


@pytest.mark.parametrize("name", documents())
def test_commands_stand_where_they_are_run(name):
    """What is to be typed stands in a fence of a language that the walk reads, never in a bare or indented one."""
    text = (ROOT / name).read_text()
    bare = [body for language, body in FENCE.findall(text) if language in ("", "bash", "shell")]
    indented = re.findall(
        r"^ {4,}(?:office|make|celery|python|pip|docker|pytest) .*$", FENCE.sub("", text), re.MULTILINE
    )
    typed = [
        line for body in bare for line in body.splitlines() if re.match(r"(?:\$ )?(office|make|celery|docker) ", line)
    ]
    assert indented + typed == []


@pytest.mark.parametrize("name", documents())
def test_excerpts_stand_in_the_examples(name):
    """A fence of `py` is a part of a file that runs."""
    files = [path.read_text() for path in (ROOT / "examples").rglob("*.py")]
    excerpts = [body for language, body in FENCE.findall((ROOT / name).read_text()) if language == "py"]
    assert [body for body in excerpts if not any(body in text for text in files)] == []


def test_the_table_of_arguments_is_the_arguments():
    """1-overview, "The public interface"."""
    shown = {}
    for row in re.findall(r"^\| (`office\.[^|]*)\| ([^|]*) \|", (ROOT / "docs/api.md").read_text(), re.MULTILINE):
        for task in SPAN.findall(row[0]):
            shown[task] = [argument.partition("=")[0] for argument in SPAN.findall(row[1])]
    there = {task: names.replace("*", "").split() for task, names in ARGUMENTS.items() if task.startswith("office.")}
    for internal in ("office.settle_mutation", "office.execute_run"):
        del there[internal]
    assert shown == there
