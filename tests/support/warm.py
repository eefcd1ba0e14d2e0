#!/usr/bin/env python3
"""warm.py [-m MODULE | -c CODE | SCRIPT] ARGUMENT...: what `python` would do with these arguments, in a process that
has already imported torch and transformers.

Importing them takes some five seconds of a processor, and the tests start about a hundred such processes. So the
first one starts a server, which imports them once and forks for each that follows. What a test sees is its own:
arguments, environment, working folder, umask, standard streams, exit status. The server's are its limits (ulimit) and
what is read from the environment by an import; torch has one thread. When the one that asked for it is killed, it gets
SIGTERM, and SIGKILL after two seconds.

VERNIER_WARM names the folder of the server's socket; without it, and for options of Python other than those two, this
is Python itself. VERNIER_RELEASE is a folder of another release of transformers (with_release.py); it gets a server of
its own. A server that has had nothing to do for a minute ends.
"""
import os
import sys

IDLE_S = 60
PRELOADED = "torch", "transformers", "transformers.modeling_utils", "h5py"


def socket_path():
    import hashlib
    release, here = os.environ.get("VERNIER_RELEASE", ""), os.path.abspath(__file__)
    made = here, os.path.join(os.path.dirname(sys.executable), "..", "requirements.txt"), os.path.join(
        os.path.dirname(release), "installed")  # what is newer gets another server
    times = [str(os.stat(f).st_mtime_ns) if os.path.exists(f) else "" for f in made]
    key = "\n".join((sys.executable, release, *times))
    return os.path.join(os.environ["VERNIER_WARM"], hashlib.sha256(key.encode()).hexdigest()[:16])


def run(request, streams):
    """The forked process: becomes what `python ARGUMENTS` is, and does not return."""
    import atexit
    import runpy
    import signal
    import threading
    import traceback
    import types
    for at, fd in enumerate(streams):
        os.dup2(fd, at)
        os.close(fd)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(request["cwd"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[:] = [p for p in request["env"].get("PYTHONPATH", "").split(os.pathsep) if p] + sys.path[1:]
    words = request["words"]
    status = 0
    try:
        if words[0] == "-m":
            sys.path.insert(0, request["cwd"])
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        elif words[0] == "-c":
            sys.path.insert(0, "")
            sys.argv = ["-c", *words[2:]]
            sys.modules["__main__"] = main = types.ModuleType("__main__")
            exec(compile(words[1], "<string>", "exec"), main.__dict__)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
        status = 0 if e.code is None else e.code & 255 if isinstance(e.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in sys.stdout, sys.stderr:
        try:
            stream.flush()
        except OSError:
            status = status or 120  # as Python
        except ValueError:  # the program has closed it
            pass
    os._exit(status)


def keep(connection, request, streams):
    """Runs one request, and tells its status; kills it when the other end is gone."""
    import select
    import signal
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.sendall(b"!")  # from here on it must not run a second time
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        connection.close()
        run(request, streams)
    for fd in streams:
        os.close(fd)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, connection], [], [])
    for how in (signal.SIGTERM, signal.SIGKILL) if ended not in ready else ():
        try:
            os.killpg(child, how)
        except ProcessLookupError:
            pass
        select.select([ended], [], [], 2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        connection.sendall(b"%d" % status)
    except OSError:
        pass


def serve(path):
    import importlib
    import json
    import signal
    import socket
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    os.close(os.pidfd_open(os.getpid()))  # OSError, where there is no such call, ends the server
    for module in PRELOADED:
        importlib.import_module(module)
    if not sys.modules["transformers"].__file__.startswith(os.environ.get("VERNIER_RELEASE", "")):
        sys.exit("another transformers is imported")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server.settimeout(IDLE_S)
    while True:
        try:
            connection, _ = server.accept()
        except TimeoutError:
            os.unlink(path)
            return
        connection.settimeout(None)
        streams = []
        try:
            data, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
            while not data.endswith(b"\n"):
                more = connection.recv(1 << 20)
                if not more:
                    raise OSError("half a request")
                data += more
            if os.fork() == 0:
                try:
                    server.close()
                    keep(connection, json.loads(data), streams)
                finally:
                    os._exit(0)
        except OSError:
            pass
        for fd in streams:
            os.close(fd)
        connection.close()


def connected(path):
    """A connection to the server, which is started where there is none; None where it cannot be."""
    import fcntl
    import socket
    import subprocess
    import time
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    folder = os.stat(os.path.dirname(path))
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o022:  # who owns the socket runs what he likes
        return None
    connection = socket.socket(socket.AF_UNIX)
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = None
        for _ in range(1000):
            try:
                connection.connect(path)
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                pass
            except OSError:  # as of a path that is too long for a socket
                return None
            if server is None:
                if os.path.exists(path):
                    os.unlink(path)
                # One thread, since the tests run side by side on small models;
                # torch.set_num_threads would make a pool that no forked process can use.
                environment = dict(os.environ, PYTHONPATH=os.environ.get("VERNIER_RELEASE", ""), OMP_NUM_THREADS="1")
                server = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", path], cwd="/",
                                          env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if server.poll() is not None:
                return None
            time.sleep(0.02)
    return None


def main():
    words = sys.argv[1:]
    if words[:1] == ["--serve"]:
        return serve(words[1])
    python = [sys.executable, *words]
    if "VERNIER_WARM" not in os.environ or not words or (words[0][:1] == "-" and words[0] not in ("-m", "-c")):
        os.execv(sys.executable, python)
    import json
    import socket
    connection = connected(socket_path())
    if connection is None:
        os.execv(sys.executable, python)
    umask = os.umask(0o077)
    os.umask(umask)
    request = json.dumps({"words": words, "cwd": os.getcwd(), "umask": umask, "env": dict(os.environ)}) + "\n"
    try:
        socket.send_fds(connection, [b" "], [0, 1, 2])
        connection.sendall(request.encode())
        begun = connection.recv(1)
    except OSError:
        begun = b""
    if not begun:  # it could not import them: let the test say what is missing
        os.execv(sys.executable, python)
    try:
        said = connection.recv(16)
    except OSError:
        said = b""
    if not said:
        sys.exit("warm.py: what ran this is gone")
    status = int(said)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    sys.exit(main())
