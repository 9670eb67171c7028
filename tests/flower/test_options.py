"""What Flower's options cannot be is one sentence, from wherever it comes, and no trace (OPS-1.3, OPS-2)."""

from __future__ import annotations

import subprocess
from socket import socket

import pytest

from office_tasks.watching import options
from tests.canary import hidden
from tests.canary.hidden import leaks, program
from tests.nodes.engine import ROOT
from tests.nodes.worker import inherited

PORT = "takes a whole number from 0 to 65535"
# Words, environment and the sentence.
BAD = {
    "a port of the environment": ([], {"FLOWER_PORT": "banana"}, f"FLOWER_PORT {PORT}"),
    "no port": ([], {"FLOWER_PORT": ""}, f"FLOWER_PORT {PORT}"),
    "a port": (["--port=banana"], {}, f"--port {PORT}"),
    "a port too high": (["--port=65536"], {}, f"--port {PORT}"),
    "a port apart": (["--port", "5555"], {}, "--port needs its value after a =, as in --port=VALUE"),
    "a time": ([], {"FLOWER_INSPECT_TIMEOUT": "x"}, "FLOWER_INSPECT_TIMEOUT takes a number"),
    "a switch": ([], {"FLOWER_READ_ONLY": "perhaps"}, "FLOWER_READ_ONLY takes true or false"),
    "a no that would be a yes": (["--read-only=no"], {}, "--read-only takes true or false"),
    "a function": ([], {"FLOWER_FORMAT_TASK": "f"},
                   "FLOWER_FORMAT_TASK takes a function, which only a configuration file can name"),
    "numbers": (["--task_runtime_metric_buckets=1,x"], {},
                "--task_runtime_metric_buckets takes a number, or several with commas between"),
    "a secret without a value": (["--cookie_secret"], {},
                                "--cookie_secret needs its value after a =, as in --cookie_secret=VALUE"),
    "a level": (["--logging=loud"], {}, "--logging takes debug, info, warning, error or none"),
    "a certificate": (["--certfile=/nowhere"], {}, "--certfile takes the name of a file that is there"),
    "a configuration": (["--conf=nowhere.py"], {}, "--conf takes a file that can be read, and nowhere.py is none"),
    "its directory": ([], {"FLOWER_CONF": "/"}, "FLOWER_CONF takes a file that can be read, and / is none"),
    "a user": ([], {"FLOWER_USER": f"a:{hidden.FLOWER}"},
               "FLOWER_USER must not have a colon in it: in a login the password begins after the first"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_an_option_that_cannot_work_is_one_sentence(capsys, bad):
    words, environment, sentence = bad
    with pytest.raises(SystemExit) as ended:
        options.check(words, environment)
    assert (ended.value.code, *capsys.readouterr()) == (2, "", f"office: {sentence}\n")


def test_what_flower_takes_passes():
    words = [
        "--port=0",
        "--read_only",
        "--debug=false",
        "--natural-time=True",
        "--basic_auth=a:b,c:d",
        "--zork",
        "port",
    ]
    options.check(words, {"FLOWER_READ_ONLY": "no", "FLOWER_PORT": "5555", "FLOWER_ZORK": "x", "FLOWER_USER": "a"})
    options.check(["--conf=nowhere.py", "--conf=office_tasks/flowerconfig.py"], {"FLOWER_CONF": "elsewhere.py"})
    options.check(["--conf=flowerconfig.py"], {})


@pytest.fixture
def flower_ends(office_env, tmp_path):
    """Run a command of Flower's that cannot start, to its end, in a directory of its own."""

    def run(*words: str, **env: str) -> tuple[int, str]:
        login = {"FLOWER_BASIC_AUTH": f"watcher:{hidden.FLOWER}", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            program(*words), cwd=tmp_path, env={**inherited(), **login, **office_env, **env}, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.stdout, leaks(done.stderr)) == ("", [])
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize("command", ["flower", "celery flower"])
def test_both_commands_say_it_before_anything_else(flower_ends, command):
    said = (2, f"office: FLOWER_PORT {PORT}\n")
    assert flower_ends(*command.split(), FLOWER_PORT="banana") == said
    said = (2, "office: --conf takes a file that can be read, and nowhere.py is none\n")
    assert flower_ends(*command.split(), "--conf=nowhere.py") == said


@pytest.mark.parametrize("command", ["flower", "celery flower"])
def test_a_place_where_it_cannot_listen_is_one_sentence(flower_ends, command):
    """Wherever the place is named; what the system says of it ends the sentence."""
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = [
            (flower_ends(*command.split(), f"--port={port}"), f"127.0.0.1, port {port}: Address already in use"),
            (flower_ends(*command.split(), FLOWER_ADDRESS="999.1.1.1"), "999.1.1.1, port 5555: "),
            (flower_ends(*command.split(), "--unix_socket=/nope/x"), "/nope/x: No such file or directory"),
            (flower_ends(*command.split(), "--unix_socket=/dev/null"), "/dev/null: File /dev/null exists and is not"),
        ]
    for (code, written), sentence in said:
        line = written.splitlines()[-1]
        assert (code, line.startswith(f"office: Flower cannot listen on {sentence}")) == (2, True), written
        assert "Traceback" not in written
