"""Runs parsers in a child process with limits on CPU time and memory per document.

Native parsers crash, loop and swallow memory; only another process can be limited and outlived. One
child per worker, spawned, kept over many documents. Requests and answers cross two pipes as raw bytes,
many requests per round trip, so that the guard costs a few microseconds per document.

A request that breaks the child (or reports lack of memory) is run once more, alone in a fresh child and
with three times the limits; if it fails again it is a dead letter. Limits count work (CPU time, address
space), never wall time, so verdicts do not depend on what else the machine does.

Linux only: the CPU limit is ``ITIMER_PROF`` (finer than ``RLIMIT_CPU``, whose unit is a second) with its
default action, which ends native code too; the memory limit is ``RLIMIT_AS`` above the size after imports.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import BinaryIO, Final, NoReturn, Self

from dataflow_ops.errors import DocumentError, DocumentTooCostly, ParserFailed, WorkerDied

ALONE_FACTOR: Final = 3
"""How much more a request may use on its second, lonely run."""
_STALL_SECONDS: Final = 600.0
_STALL_FACTOR: Final = 20
"""The child is taken for hung, and the task fails without a verdict, when no answer came for this many
seconds of wall time plus this many times the CPU limit; a busy machine may need that long."""

_ASK_SECONDS: Final = 0.5

_BATCH: Final = struct.Struct("<IdQ")  # requests, CPU seconds, memory bytes
_SIZE: Final = struct.Struct("<Q")
_ANSWER: Final = struct.Struct("<BQ")  # status, length
_DONE, _NO_MEMORY, _KEEP, _RECYCLE, _READY = range(5)
_PR_SET_PDEATHSIG: Final = 1
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

_START: Final = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from {0} import serve; serve()"


def _nothing() -> None:
    """Nobody asks for a pause."""


class ParseGuard:
    """A persistent child process that answers requests under limits. Not for use by several threads.

    The child dies with the thread that started it, so create and use the guard in a worker's main thread.

    Args:
        target: ``module:function`` run in the child, ``function(request: memoryview) -> bytes``.
        cpu_seconds: CPU time for one request.
        memory_mb: address space for one request above what the child has after its imports.
        preload: modules imported in the child at its start, so that no document pays for them.
    """

    def __init__(self, target: str, cpu_seconds: float, memory_mb: int, preload: Sequence[str] = ()) -> None:
        self._target = target
        self._cpu = cpu_seconds
        self._memory = memory_mb << 20
        self._preload = tuple(preload)
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child = None

    @property
    def pid(self) -> int | None:
        """Process id of the child, None while there is none."""
        return None if self._child is None else self._child.pid

    def run(
        self, requests: Sequence[Sequence[bytes]], ask: Callable[[], None] = _nothing
    ) -> list[bytes | DocumentError]:
        """Answer every request, in order.

        Args:
            requests: each a sequence of buffers whose concatenation the target gets.
            ask: called every half second while an answer is waited for. What it raises goes to the caller;
                the document under way is abandoned without a verdict, and the child with it.

        Returns:
            The target's answers; :class:`DocumentTooCostly` or :class:`ParserFailed` for requests that
            broke the child twice.

        Raises:
            WorkerDied: the child can't be started, or hangs without using CPU time.
        """
        answers: list[bytes | DocumentError] = []
        try:
            while len(answers) < len(requests):
                got, whole = self._attempt(requests[len(answers) :], 1, ask)
                answers += got
                if not whole:
                    answers.append(self._alone(requests[len(answers)], ask))
        except BaseException:
            self.close()  # its answers would be taken for those to the next requests
            raise
        return answers

    def _alone(self, request: Sequence[bytes], ask: Callable[[], None]) -> bytes | DocumentError:
        self.close()
        got, whole = self._attempt([request], ALONE_FACTOR, ask)
        if got:
            self.close()  # what it has grown to must not count against the next document
            return got[0]
        assert not whole
        return self._verdict()

    def _attempt(
        self, requests: Sequence[Sequence[bytes]], factor: int, ask: Callable[[], None]
    ) -> tuple[list[bytes], bool]:
        """Answers before the child broke, and whether all were answered."""
        if self._child is None:
            self._child = _Child(self._target, self._preload, ask)
        child = self._child
        got: list[bytes] = []
        try:
            child.send(requests, self._cpu * factor, self._memory * factor)
            for _ in requests:
                status, answer = child.receive(ask)
                if status == _NO_MEMORY:
                    child.out_of_memory = True
                    return got, False
                got.append(answer)
            if child.receive(ask)[0] == _RECYCLE:
                self.close()
        except (BrokenPipeError, EOFError):
            if len(got) == len(requests):  # it died after its work was done
                self.close()
                return got, True
            return got, False
        return got, True

    def _verdict(self) -> DocumentError:
        """Why the lonely run failed."""
        child = self._child
        assert child is not None
        code = 0 if child.out_of_memory else child.wait()
        self.close()
        cpu, memory = self._cpu * ALONE_FACTOR, self._memory * ALONE_FACTOR >> 20
        if child.out_of_memory:
            return DocumentTooCostly(
                f"needs more than {memory} MB of memory, alone with three times the limit"
            )
        if code == -signal.SIGPROF:
            return DocumentTooCostly(
                f"needs more than {cpu:g} s of CPU time, alone with three times the limit"
            )
        if code == -signal.SIGKILL:
            return DocumentTooCostly("the parser was killed twice by the system, most likely for its memory")
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return ParserFailed(f"the parser crashed twice ({name})")


class _Child:
    """The parent's end: a process and two pipes."""

    def __init__(self, target: str, preload: Sequence[str], ask: Callable[[], None]) -> None:
        request_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        self._buffer = bytearray()
        self.out_of_memory = False
        self._patience = _STALL_SECONDS
        paths = json.dumps([p or os.getcwd() for p in sys.path])
        arguments = [str(request_read), str(answer_write), str(os.getpid()), target, *preload]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(__name__), paths, *arguments],
                pass_fds=(request_read, answer_write),
                stdin=subprocess.DEVNULL,
                close_fds=True,
            )
        except OSError as e:
            raise WorkerDied(f"the parser process can't be started: {e}") from e
        finally:
            os.close(request_read)
            os.close(answer_write)
        try:
            ready, _ = self.receive(ask)
        except EOFError as e:
            raise WorkerDied(f"the parser process ended while starting (exit code {self.wait()})") from e
        except BaseException:
            self.close()
            raise
        assert ready == _READY

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, requests: Sequence[Sequence[bytes]], cpu: float, memory: int) -> None:
        self._patience = _STALL_SECONDS + _STALL_FACTOR * cpu
        buffers: list[bytes] = [_BATCH.pack(len(requests), cpu, memory)]
        for request in requests:
            buffers.append(_SIZE.pack(sum(map(len, request))))
            buffers += request
        small: list[bytes] = []
        size = 0
        for buffer in buffers:
            small.append(buffer)
            size += len(buffer)
            if size >= 256 << 10:
                _write_all(self._write, b"".join(small))
                small, size = [], 0
        _write_all(self._write, b"".join(small))

    def receive(self, ask: Callable[[], None]) -> tuple[int, bytes]:
        status, length = _ANSWER.unpack(self._take(_ANSWER.size, ask))
        return status, self._take(length, ask) if length else b""

    def _take(self, n: int, ask: Callable[[], None]) -> bytes:
        silent_since = time.monotonic()
        while len(self._buffer) < n:
            ready, _, _ = select.select([self._read], [], [], min(_ASK_SECONDS, self._patience))
            if not ready:
                ask()
                if time.monotonic() - silent_since < self._patience:
                    continue
                self._process.kill()
                raise WorkerDied(f"the parser gave no answer for {self._patience:g} s and hangs")
            silent_since = time.monotonic()
            data = os.read(self._read, max(64 << 10, n - len(self._buffer)))
            if not data:
                raise EOFError
            self._buffer += data
        taken = bytes(memoryview(self._buffer)[:n])
        del self._buffer[:n]
        return taken

    def wait(self) -> int:
        return self._process.wait(timeout=60)

    def close(self) -> None:
        os.close(self._write)
        os.close(self._read)
        self._process.kill()
        self._process.wait()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def serve() -> NoReturn:
    """The child: ``argv`` is search path, two pipe ends, parent, target, preloaded modules."""
    reader_fd, writer_fd, parent = map(int, sys.argv[2:5])
    _die_with(parent)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    module, _, function = sys.argv[5].partition(":")
    handle: Callable[[memoryview], bytes] = getattr(importlib.import_module(module), function)
    for name in sys.argv[6:]:
        importlib.import_module(name)
    with os.fdopen(reader_fd, "rb", 1 << 16) as reader, os.fdopen(writer_fd, "wb", 1 << 16) as writer:
        writer.write(_ANSWER.pack(_READY, 0))
        writer.flush()
        baseline = _address_space()
        while head := reader.read(_BATCH.size):
            count, cpu, memory = _BATCH.unpack(head)
            resource.setrlimit(resource.RLIMIT_AS, (baseline + memory, resource.RLIM_INFINITY))
            if not _answer_batch(reader, writer, handle, count, cpu):
                sys.exit(0)
            grown = _address_space() - baseline > memory // 2
            writer.write(_ANSWER.pack(_RECYCLE if grown else _KEEP, 0))
            writer.flush()
    sys.exit(0)


def _answer_batch(
    reader: BinaryIO, writer: BinaryIO, handle: Callable[[memoryview], bytes], count: int, cpu: float
) -> bool:
    """Answer ``count`` requests; False (after saying so) when memory ran out."""
    try:
        # All of them first: the parent reads nothing before it has sent everything.
        requests = [reader.read(_SIZE.unpack(reader.read(_SIZE.size))[0]) for _ in range(count)]
        for i, request in enumerate(requests):
            signal.setitimer(signal.ITIMER_PROF, cpu)
            answer = handle(memoryview(request))
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            requests[i] = b""
            writer.write(_ANSWER.pack(_DONE, len(answer)))
            writer.write(answer)
            writer.flush()
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        writer.write(_ANSWER.pack(_NO_MEMORY, 0))
        writer.flush()
        return False
    return True


def _address_space() -> int:
    """Bytes of address space in use."""
    with open("/proc/self/statm", "rb") as f:
        return int(f.read().split()[0]) * _PAGE


def _die_with(parent: int) -> None:
    """End when the parent does, even in the middle of native code."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)
