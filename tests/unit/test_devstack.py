"""The embedded servers: real ones, in every state that a person or a crash can leave them in."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import psycopg
import pytest
import redis as redis_client

from office_tasks.devstack import DevStack, DevStackError, Postgres, Redis, binaries, privilege, spawn
from office_tasks.devstack.lock import DirectoryLock
from office_tasks.errors import OfficeError

AS_ROOT = os.geteuid() == 0


def wait_until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        pause.wait(0.01)


def lives(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def connect(postgres):
    return psycopg.connect(postgres.url.replace("+psycopg", ""), autocommit=True)


def ask(postgres, query):
    with connect(postgres) as connection:
        return connection.execute(query).fetchone()[0]


def ping(redis, **options):
    with redis_client.Redis.from_url(redis.url, socket_timeout=0.2, **options) as client:
        return client.ping()


@pytest.fixture
def data_dir(tmp_path):
    place = tmp_path / "data"
    yield place
    for link in place.rglob(privilege.ELSEWHERE):  # as root, pytest's own directory is closed to `nobody`
        shutil.rmtree(link.resolve())


@pytest.fixture
def supervisor(data_dir):
    launched = []

    def launch(*args):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.unit.supervisor", str(data_dir), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        launched.append(process)
        return process

    yield launch
    for process in launched:
        process.communicate()  # an end of its input ends it


def pids_of(supervisor):
    """Of both its servers, once they answer."""
    return json.loads(supervisor.stdout.readline())


@pytest.fixture(scope="module")
def stack():
    with DevStack(durable=False, settings={"max_connections": "37"}) as running:
        yield running


@pytest.fixture
def redis(stack):
    return stack.redis.start()


@pytest.fixture
def postgres(stack):
    return stack.postgres.start()


class TestLife:
    def test_both_answer(self, postgres, redis):
        assert ask(postgres, "SELECT current_user") == "postgres"
        assert ping(redis)

    def test_throwaway_and_extra_settings_reach_the_server(self, postgres):
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            assert ask(postgres, f"SHOW {name}") == "off"
        assert ask(postgres, "SHOW max_connections") == "37"
        assert ask(postgres, "SHOW server_encoding") == "UTF8"

    def test_a_durable_server_keeps_its_safety(self, data_dir):
        with Postgres(data_dir) as durable:
            assert [ask(durable, f"SHOW {name}") for name in ("fsync", "full_page_writes")] == ["on", "on"]

    def test_redis_keeps_nothing_and_evicts_nothing(self, redis):
        with redis_client.Redis.from_url(redis.url, decode_responses=True) as client:
            found = {name: client.config_get(name)[name] for name in ("save", "appendonly", "maxmemory-policy")}
        assert found == {"save": "", "appendonly": "no", "maxmemory-policy": "noeviction"}

    @pytest.mark.parametrize("verb", ["restart", "kill"])
    def test_postgres_returns_on_its_port_with_its_rows(self, verb):
        with Postgres(durable=False, settings={"synchronous_commit": "on"}) as postgres:
            with connect(postgres) as connection:
                connection.execute("CREATE TABLE kept ()")
            url, pid = postgres.url, postgres.pid
            getattr(postgres, verb)()
            postgres.start()
            assert postgres.url == url
            assert postgres.pid != pid
            assert ask(postgres, "SELECT count(*) FROM kept") == 0

    def test_a_killed_postgres_leaves_no_backend(self, postgres):
        with connect(postgres) as connection:
            backend = connection.info.backend_pid
            postgres.kill()
            assert postgres.pid is None
            assert not lives(backend)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")

    @pytest.mark.parametrize("verb", ["restart", "kill"])
    def test_redis_returns_on_its_port_empty(self, redis, verb):
        with redis_client.Redis.from_url(redis.url) as client:
            client.set("gone", 1)
        url = redis.url
        getattr(redis, verb)()
        redis.start()
        assert redis.url == url
        with redis_client.Redis.from_url(redis.url) as client:
            assert client.get("gone") is None

    def test_a_paused_redis_accepts_and_never_answers(self, redis):
        redis.pause()
        with pytest.raises(redis_client.exceptions.TimeoutError):
            ping(redis, retry=None)
        redis.resume()
        assert ping(redis)

    def test_a_paused_redis_stops(self):
        with Redis() as paused:
            pid = paused.pid
            paused.pause()
        assert not lives(pid)

    def test_stop_removes_what_no_one_asked_to_keep(self):
        with Postgres(durable=False) as one:
            home = one.home
            assert home.is_dir()
        one.stop()
        assert not home.exists()

    def test_a_server_outlives_the_thread_that_started_it(self):
        server = Redis()
        starter = threading.Thread(target=server.start)
        starter.start()
        starter.join()
        wait_until(lambda: starter.native_id not in {thread.id for thread in psutil.Process().threads()})
        assert ping(server)
        server.stop()

    def test_a_second_start_changes_nothing(self, postgres):
        pid = postgres.pid
        assert postgres.start().pid == pid

    def test_no_url_before_the_first_start(self):
        with pytest.raises(DevStackError, match=r"start\(\)"):
            _ = Postgres().url

    def test_errors_have_the_package_root(self):
        assert issubclass(DevStackError, OfficeError)


class TestDirectories:
    def test_one_living_stack_a_directory(self, data_dir, supervisor):
        holder = supervisor()
        postgres_pid, redis_pid = pids_of(holder)
        with pytest.raises(DevStackError, match=f"in use by a running stack .pid {holder.pid}.*kill {holder.pid}"):
            DevStack(data_dir).start()
        assert lives(postgres_pid)
        assert lives(redis_pid)

    def test_the_directory_is_free_after_a_stop(self, data_dir):
        with DevStack(data_dir, durable=False) as stack, connect(stack.postgres) as connection:
            connection.execute("CREATE TABLE kept ()")
        with DevStack(data_dir, durable=False) as stack:
            assert ask(stack.postgres, "SELECT count(*) FROM kept") == 0

    @pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
    def test_servers_die_with_a_killed_supervisor(self, data_dir, supervisor):
        holder = supervisor()
        pids = pids_of(holder)
        holder.kill()
        wait_until(lambda: not any(map(lives, pids)))
        with DevStack(data_dir, durable=False) as stack:
            assert ask(stack.postgres, "SELECT 1") == 1

    def test_a_start_right_after_the_kill_waits_for_the_dying(self, data_dir, supervisor):
        holder = supervisor()
        pids_of(holder)
        holder.kill()
        holder.wait()
        with DevStack(data_dir, durable=False) as stack:
            assert ask(stack.postgres, "SELECT 1") == 1

    def test_orphans_of_a_killed_supervisor_are_stopped(self, data_dir, supervisor, tmp_path):
        loose = tmp_path / "tether.py"
        loose.write_text(spawn.TETHER.read_text().replace('sys.platform == "linux"', "False"))
        holder = supervisor("outlived", str(loose))
        pids = pids_of(holder)
        holder.kill()
        holder.wait()
        assert all(map(lives, pids))
        with DevStack(data_dir, durable=False) as stack:
            assert not any(map(lives, pids))
            assert ask(stack.postgres, "SELECT 1") == 1
            assert ping(stack.redis)

    def test_ctrl_c_stops_both_in_order(self, data_dir, supervisor):
        holder = supervisor()
        pids = pids_of(holder)
        os.killpg(holder.pid, signal.SIGINT)
        assert holder.stdout.readline() == "interrupted\n"
        assert holder.wait(timeout=20) == 0
        assert not any(map(lives, pids))
        assert (data_dir / "postgres" / "postgres.log").read_text().count("received fast shutdown request") == 1

    def test_a_forked_child_stops_nothing(self, supervisor):
        holder = supervisor("fork")
        pids = pids_of(holder)
        assert all(map(lives, pids))

    def test_a_stranger_with_the_old_pid_lives_on(self, data_dir):
        with Postgres(data_dir, durable=False) as postgres:
            pid_file = postgres.cluster / "postmaster.pid"
            postgres.kill()
            old = pid_file.read_text().splitlines()
            stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            pid_file.write_text("\n".join([str(stranger.pid), *old[1:]]) + "\n")
            postgres.start()
            assert ask(postgres, "SELECT 1") == 1
            assert stranger.poll() is None
            stranger.communicate(b"\n")

    def test_a_half_made_cluster_is_made_again(self, data_dir):
        with Postgres(data_dir, durable=False) as postgres:
            cluster = postgres.cluster
        half = cluster.rename(cluster.with_name("cluster.new"))
        shutil.rmtree(half / "base")
        with Postgres(data_dir, durable=False) as postgres:
            assert ask(postgres, "SELECT 1") == 1
        assert not half.exists()

    def test_an_initdb_killed_midway_is_run_again(self, data_dir, supervisor):
        home = data_dir / "postgres"
        halves = [place / "cluster.new" / "global" for place in (home, home / privilege.ELSEWHERE)]
        holder = supervisor()
        wait_until(lambda: any(half.exists() for half in halves))
        holder.kill()
        holder.wait()
        with DevStack(data_dir, durable=False) as stack:
            assert ask(stack.postgres, "SELECT 1") == 1
            assert not stack.postgres.cluster.with_name("cluster.new").exists()

    def test_a_cluster_of_another_major_version_is_left_alone(self, data_dir):
        with Postgres(data_dir, durable=False) as postgres:
            version = postgres.cluster / "PG_VERSION"
        ours = version.read_text().strip()
        version.write_text("9\n")
        with pytest.raises(DevStackError, match=f"made by PostgreSQL 9 and this is PostgreSQL {ours}: remove it"):
            Postgres(data_dir).start()
        assert version.read_text() == "9\n"

    def test_a_directory_of_something_else_is_left_alone(self, data_dir):
        with Postgres(data_dir, durable=False) as postgres:
            cluster = postgres.cluster
        (cluster / "PG_VERSION").unlink()
        with pytest.raises(DevStackError, match="is no PostgreSQL data directory: move it away"):
            Postgres(data_dir).start()
        assert (cluster / "base").is_dir()

    def test_a_failed_start_gives_the_directory_back(self, data_dir):
        with pytest.raises(DevStackError):
            Postgres(data_dir, durable=False, settings={"shared_buffers": "nonsense"}).start()
        with Postgres(data_dir, durable=False) as postgres:
            assert ask(postgres, "SELECT 1") == 1

    def test_a_failed_start_shows_the_end_of_the_log(self, data_dir):
        broken = Postgres(data_dir, durable=False, settings={"shared_buffers": "nonsense"})
        with pytest.raises(DevStackError, match=r"(?s)ended while starting.*log:.*shared_buffers.*nonsense"):
            broken.start()

    def test_a_directory_that_cannot_be_written_says_so(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(DevStackError, match=r"cannot write to .*file.*choose another data directory"):
            DevStack(tmp_path / "file").start()

    def test_what_a_killed_supervisor_left_in_tmp_is_removed(self, monkeypatch, tmp_path):
        monkeypatch.setattr(privilege.tempfile, "tempdir", str(tmp_path))
        monkeypatch.setattr(privilege, "server_user", lambda: None)
        left, held, begun = (tmp_path / f"{privilege.PREFIX}{name}" for name in ("left", "held", "begun"))
        for place, content in ((left, "1\n"), (held, "1\n"), (begun, "")):
            place.mkdir()
            (place / "lock").write_text(content)
        holder = DirectoryLock(held)
        holder.acquire()
        privilege.temporary_home()
        holder.release()
        assert [place.exists() for place in (left, held, begun)] == [False, True, True]


@pytest.mark.skipif(not AS_ROOT, reason="only root gives its servers to another account")
class TestRoot:
    def test_a_cluster_of_another_user_is_left_alone(self, data_dir):
        with Postgres(data_dir, durable=False) as postgres:
            cluster = postgres.cluster
        privilege.give(cluster, "root")
        with pytest.raises(DevStackError, match="belongs to root: run as root, remove it"):
            Postgres(data_dir).start()

    def test_postgres_runs_as_nobody(self, postgres):
        assert psutil.Process(postgres.pid).username() == privilege.USER

    def test_a_closed_directory_links_to_an_open_one(self, tmp_path, data_dir):
        tmp_path.chmod(0o700)
        with Postgres(data_dir, durable=False) as postgres:
            first = postgres.cluster
        with Postgres(data_dir, durable=False) as postgres:
            assert postgres.cluster == first
        assert (data_dir / privilege.ELSEWHERE).resolve() == first.parent
        assert tmp_path.stat().st_mode & 0o777 == 0o700

    def test_a_cleaned_away_target_is_made_again(self, tmp_path, data_dir):
        tmp_path.chmod(0o700)
        with Postgres(data_dir, durable=False) as postgres:
            first = postgres.cluster.parent
        shutil.rmtree(first)
        with Postgres(data_dir, durable=False) as postgres:
            assert ask(postgres, "SELECT 1") == 1

    def test_closed_programs_are_copied(self, tmp_path, monkeypatch):
        found = binaries.find_postgres()
        if not found.portable:
            pytest.skip("the wheel's programs are not installed")
        tmp_path.chmod(0o700)
        package = found.tree.parent
        for source in (package, package.with_name(f"{package.name}.libs")):
            if source.is_dir():
                shutil.copytree(source, tmp_path / source.name, symlinks=True)
        tree = tmp_path / package.name / found.tree.name
        closed = binaries.PostgresPrograms(tree / "bin", tree, portable=True)
        monkeypatch.setattr("office_tasks.devstack.postgres.find_postgres", lambda: closed)
        with Postgres(durable=False) as postgres:
            assert ask(postgres, "SELECT 1") == 1
            assert Path(psutil.Process(postgres.pid).exe()).is_relative_to(postgres.home)

    def test_closed_programs_of_the_system_are_named(self, tmp_path, monkeypatch):
        tmp_path.chmod(0o700)
        (tmp_path / "postgres").touch(mode=0o755)
        closed = binaries.PostgresPrograms(tmp_path, tmp_path, portable=False)
        monkeypatch.setattr("office_tasks.devstack.postgres.find_postgres", lambda: closed)
        with pytest.raises(DevStackError, match=r"nobody may not run .*chmod o\+x"):
            Postgres().start()

    def test_a_system_without_nobody_says_so(self, monkeypatch):
        monkeypatch.setattr(privilege, "USER", "no-such-account")
        with pytest.raises(DevStackError, match=r"refuses to run as root.*run as another user"):
            Postgres().start()
