"""What the guarded child runs in the tests: the request says what to do."""

from __future__ import annotations

import ctypes
import os
import time


def act(request: memoryview) -> bytes:
    order = bytes(request)
    if order == b"spin":
        while True:
            pass
    if order.startswith(b"burn "):
        end = time.process_time() + float(order[5:])
        while time.process_time() < end:
            pass
    if order == b"segfault":
        ctypes.string_at(0)
    if order.startswith(b"memory "):
        size = int(order[7:]) << 20
        return str(len(bytearray(size))).encode()
    if order == b"native memory":
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        if libc.malloc(ctypes.c_size_t(1 << 33)) is None:
            os.abort()
    if order == b"sleep":
        time.sleep(60)
    if order == b"exit":
        os._exit(3)
    if order == b"pid":
        return str(os.getpid()).encode()
    return order.upper()
