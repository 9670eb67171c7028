"""Where the embedded servers find their programs and their ports."""

import socket
import sys
from pathlib import Path

import pytest

from office_tasks.devstack import DevStackError, Postgres, Redis, binaries, ports


class TestPorts:
    @pytest.fixture
    def taken(self):
        with socket.create_server((ports.HOST, ports.pick())) as listener:
            yield listener.getsockname()[1]

    @pytest.mark.parametrize("server", [Postgres, Redis])
    def test_a_taken_port_is_named(self, server, taken):
        with pytest.raises(DevStackError, match=f"port {taken} .* is taken: stop who listens"):
            server(port=taken).start()

    @pytest.mark.parametrize("server", [Postgres, Redis])
    def test_a_lost_race_for_a_port_is_run_again(self, server, taken, monkeypatch):
        free = ports.pick()
        chosen = iter([taken, free])
        monkeypatch.setattr(ports, "pick", lambda: next(chosen))
        with server() as running:
            assert running.port == free

    def test_ports_are_none_that_the_system_gives_to_clients(self):
        assert ports.pick() in ports.RANGE
        assert max(ports.RANGE) < 32_768


class TestPrograms:
    @pytest.fixture
    def bare_system(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("REDIS_SERVER_BIN", raising=False)
        monkeypatch.setattr(binaries, "DEBIAN", tmp_path)
        monkeypatch.setattr(binaries.importlib.util, "find_spec", lambda _: None)
        monkeypatch.setattr(binaries.sysconfig, "get_path", lambda _: str(tmp_path))

    @pytest.mark.usefixtures("bare_system")
    @pytest.mark.parametrize(("server", "package"), [(Postgres, "postgresql"), (Redis, "redis")])
    def test_missing_programs_say_how_to_get_them(self, server, package):
        with pytest.raises(DevStackError, match=rf"office-tasks\[embedded\].*apt install {package}.*brew install"):
            server().start()

    def test_a_wrong_redis_server_bin_is_named(self, monkeypatch, tmp_path):
        monkeypatch.setenv("REDIS_SERVER_BIN", str(tmp_path / "absent"))
        with pytest.raises(DevStackError, match=r"REDIS_SERVER_BIN names .*absent"):
            Redis().start()

    def test_redis_server_bin_comes_first(self, monkeypatch):
        monkeypatch.setenv("REDIS_SERVER_BIN", sys.executable)
        assert binaries.find_redis() == Path(sys.executable)

    @pytest.mark.usefixtures("bare_system")
    def test_postgres_of_the_system_is_the_fallback(self, monkeypatch, tmp_path):
        for place in ("9/bin", "18/bin"):
            (tmp_path / place).mkdir(parents=True)
            for name in ("initdb", "postgres"):
                (tmp_path / place / name).touch(mode=0o755)
        assert binaries.find_postgres().bin == tmp_path / "18/bin"
        monkeypatch.setenv("PATH", str(tmp_path / "9/bin"))
        assert binaries.find_postgres().bin == tmp_path / "9/bin"
