# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages over RDMA, by libibchan: a client dials a server's address, a server takes clients.

    with ibchan.dial("10.77.0.1", 7471) as channel:
        channel.send(b"hello")

    with ibchan.serve(service=7471) as server:
        for channel in server:
            with channel:
                print(channel.receive())

Errors are OSError, or what Python makes of it by its errno: ConnectionRefusedError,
TimeoutError and so on; its text says what failed, and what to do about it. Times are in
seconds, None is without an end. Any method may be called by any thread; close() ends the calls
that are waiting. An iteration over a server ends with an error when there is nothing left for a
client, as accept(2) does. The memory of a buffer is the caller's own again when a call returns, and
Python keeps a bytearray from being resized meanwhile.
"""
import contextlib
import ctypes
import errno
import os
import select
import sys
import threading
import time

__all__ = ["Channel", "Server", "dial", "serve"]

_MESSAGE_BYTES = 16384
_NEVER = -1
_LONGEST = 2 ** 62  # nanoseconds
_MOST = 2 ** 30  # bytes that a peer can make receive() allocate
_ERROR_ROOM = 512  # more than a struct ibchan_error has
_FIRST_VALUE = slice(24, 32)  # of its reason

_library = ctypes.CDLL("libibchan.so.0")


class _Params(ctypes.Structure):
    """struct ibchan_message_params"""
    _fields_ = [("size", ctypes.c_uint32), ("messages", ctypes.c_uint32),
                ("message_bytes", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("timeout_ns", ctypes.c_int64), ("source", ctypes.c_char_p)]


def _function(name, *types, returns=ctypes.c_int):
    function = getattr(_library, "ibchan_" + name)
    function.argtypes = types
    function.restype = returns
    return function


_handle = ctypes.c_void_p
_text = ctypes.c_char_p
_error_string = _function("error_string", _handle, returns=_text)
_strerror = _function("strerror", ctypes.c_int, returns=_text)
_dial = _function("dial", _text, _text, _handle, _handle, _handle)
_serve = _function("serve", _text, _text, _handle, _handle, _handle)
_take = _function("take", _handle, ctypes.c_int64, _handle, _handle)
_address = _function("server_address", _handle, _handle, returns=None)
_server_fd = _function("server_fd", _handle)
_server_close = _function("server_close", _handle)
_send = _function("send_bytes", _handle, _handle, ctypes.c_size_t, ctypes.c_int64, _handle)
_receive = _function("receive_bytes", _handle, _handle, ctypes.c_size_t, ctypes.c_int64, _handle,
                     returns=ctypes.c_ssize_t)
_channel_fd = _function("channel_fd", _handle)
_break = _function("channel_break", _handle)
_channel_close = _function("channel_close", _handle)


def _call(function, *arguments):
    """Calls what takes a struct ibchan_error last; raises what it says."""
    error = ctypes.create_string_buffer(_ERROR_ROOM)
    result = function(*arguments, error)
    if result < 0:
        failure = OSError(-result, _error_string(error).decode())
        failure.value = int.from_bytes(error[_FIRST_VALUE], sys.byteorder)
        raise failure
    return result


def _name(value):
    return None if value is None else str(value).encode()


def _ns(seconds):
    if seconds is None:
        return _NEVER
    if seconds < 0:
        raise ValueError("a time-out is negative")
    return int(min(seconds * 1e9, _LONGEST))


def _end_of(timeout):
    ns = _ns(timeout)
    return None if ns < 0 else time.monotonic() + timeout


def _left(end):
    return None if end is None else max(end - time.monotonic(), 0)


def _params(messages, message_bytes, timeout):
    ns = _LONGEST if timeout is None else max(_ns(timeout), 1)
    return _Params(ctypes.sizeof(_Params), messages, message_bytes, 0, ns)


def _memory(buffer, writable):
    """An object of ctypes over a buffer, which cannot change its size as long as it lives."""
    if isinstance(buffer, bytes) and not writable:
        return ctypes.c_char_p(buffer), len(buffer)
    view = memoryview(buffer).cast("B")
    if view.readonly and not writable:
        return ctypes.c_char_p(bytes(view)), len(view)
    return (ctypes.c_char * len(view)).from_buffer(view), len(view)


class _Object:
    """Owns a handle of the library. The last call that uses it ends it, once it is closed."""

    def __init__(self, handle):
        self._handle = handle
        self._idle = threading.Condition()
        self._users = []  # a thread for each call
        self._ended = False
        self._closed_handle = None
        self._process = os.getpid()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self):
        if hasattr(self, "_process"):
            self.close()

    @contextlib.contextmanager
    def _used(self):
        if os.getpid() != self._process:
            raise OSError(errno.EPERM, "another process has made it")
        entered = False
        try:
            with self._idle:
                if not self._handle:
                    raise OSError(errno.EBADF, "it is closed")
                self._users.append(threading.get_ident())
                entered = True
            yield self._handle
        finally:
            if entered:
                with self._idle:
                    self._users.remove(threading.get_ident())
                    self._end_unused()

    def _end_unused(self):
        """Ends a closed handle that no call uses any more. Under the lock."""
        handle = self._closed_handle
        if not handle or self._users:
            return
        self._closed_handle = None
        result = self._end(handle)
        self._ended = True
        self._idle.notify_all()
        if result < 0:
            raise OSError(-result, _strerror(result).decode())

    def close(self):
        """Ends calls of other threads, waits until they have returned, and ends the object.

        Of a channel no thread uses, what was sent last has arrived by then, or it raises.

        A second close does nothing. Within a signal handler that has interrupted a call of the
        same thread it does not wait: the object ends when that call returns.
        """
        if os.getpid() != self._process:
            # Another thread of the parent may have had the lock.
            handle, self._handle = self._handle, None
            if handle:
                self._end(handle)
            return
        with self._idle:
            if self._handle:
                self._closed_handle, self._handle = self._handle, None
                if self._users:
                    self._interrupt(self._closed_handle)
                self._end_unused()
            if threading.get_ident() not in self._users:
                self._idle.wait_for(lambda: self._ended)


class Channel(_Object):
    """Carries messages between two programs. dial() and Server.take() make them."""

    _end = staticmethod(_channel_close)
    _interrupt = staticmethod(_break)

    def __init__(self, handle, message_bytes):
        super().__init__(handle)
        self._message_bytes = message_bytes

    def __iter__(self):
        """The messages, until the peer has closed the channel."""
        return iter(self.receive, None)

    def fileno(self):
        """For select and asyncio: readable while receive() has something to do."""
        with self._used() as handle:
            return _channel_fd(handle)

    def send(self, buffer, timeout=None):
        """Sends a message: a short one is copied, and a long one was received when this returns.

        Waits while the peer has not received earlier ones. Raises TimeoutError. A signal's handler
        runs when that is over.
        """
        memory, length = _memory(buffer, False)
        with self._used() as handle:
            _call(_send, handle, memory, length, _ns(timeout))

    def receive(self, timeout=None):
        """The next message as bytes; None when the peer has closed the channel.

        One of more than 2^30 bytes raises; receive_into() takes it.
        """
        buffer = bytearray(self._message_bytes)
        while True:
            try:
                length = self.receive_into(buffer, timeout)
                return None if length is None else bytes(memoryview(buffer)[:length])
            except OSError as failure:
                if failure.errno != errno.EMSGSIZE or failure.value > _MOST:
                    raise
                buffer = bytearray(failure.value)

    def receive_into(self, buffer, timeout=None):
        """The next message into a buffer: how long it is; None as for receive().

        One that does not fit stays for the next call, and the error's value is its length.
        """
        memory, length = _memory(buffer, True)
        end = _end_of(timeout)
        while True:
            with self._used() as handle, contextlib.suppress(InterruptedError):
                try:
                    return _call(_receive, handle, memory, length, _ns(_left(end)))
                except OSError as failure:
                    if failure.errno != errno.ENODATA:
                        raise
                    return None


class Server(_Object):
    """Listens. An iteration takes one client after the other."""

    def __init__(self, handle, message_bytes):
        try:
            self._closed, self._closing = os.pipe()
        except OSError:
            _server_close(handle)
            raise
        super().__init__(handle)
        self._message_bytes = message_bytes

    def _interrupt(self, handle):
        os.write(self._closing, b".")

    def _end(self, handle):
        os.close(self._closed)
        os.close(self._closing)
        return _server_close(handle)

    def __iter__(self):
        while True:
            yield self.take()

    @property
    def port(self):
        """The number of the port that it listens on."""
        address = ctypes.create_string_buffer(128)
        with self._used() as handle:
            _address(handle, address)
        return int.from_bytes(address[2:4], "big")

    def _wait(self, handle, end):
        poll = select.poll()
        poll.register(_server_fd(handle), select.POLLIN)
        poll.register(self._closed, select.POLLIN)
        left = _left(end)
        poll.poll(None if left is None else min(left * 1000, 2 ** 30))

    def take(self, timeout=None):
        """The channel of the next client. Raises TimeoutError."""
        channel = ctypes.c_void_p()
        end = _end_of(timeout)
        while True:
            with self._used() as handle:
                try:
                    _call(_take, handle, 0, ctypes.byref(channel))
                    return Channel(channel.value, self._message_bytes)
                except InterruptedError:
                    continue
                except TimeoutError:
                    if _left(end) == 0:
                        raise
                self._wait(handle, end)


def dial(host, service, *, messages=0, message_bytes=_MESSAGE_BYTES, timeout=60,
         source=None):
    """Connects to a server: a Channel. What the arguments mean ibchan_dial(3) says."""
    channel = ctypes.c_void_p()
    params = _params(messages, message_bytes, timeout)
    params.source = _name(source)
    _call(_dial, _name(host), _name(service), ctypes.byref(params), ctypes.byref(channel))
    return Channel(channel.value, message_bytes or _MESSAGE_BYTES)


def serve(host=None, service=None, *, messages=0, message_bytes=_MESSAGE_BYTES, timeout=60):
    """Listens for clients: a Server. What the arguments mean ibchan_serve(3) says."""
    server = ctypes.c_void_p()
    params = _params(messages, message_bytes, timeout)
    _call(_serve, _name(host), _name(service), ctypes.byref(params), ctypes.byref(server))
    return Server(server.value, message_bytes or _MESSAGE_BYTES)
