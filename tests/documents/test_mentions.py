"""What the documents mention in passing is there: commands with their options, files, make's targets."""

from __future__ import annotations

import re
import shlex

import pytest
import typer.main

from office_tasks.arguments import ARGUMENTS
from office_tasks.cli.main import office
from tests.documents.pages import FENCE, ROOT, documents

SPAN = re.compile(r"`([^`\n]+)`")


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
