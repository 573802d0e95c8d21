# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages over RDMA, by libibchan: a client dials a server's address, a server takes clients.

    with ibchan.dial("10.77.0.1", 7471) as channel:
        channel.send(b"hello")

    with ibchan.serve(service=7471) as server:
        for channel in server:
            with channel:
                print(channel.receive())

One loop serves any number of clients:

    with ibchan.Context() as context, ibchan.serve(service=7471, context=context):
        for happening in context:
            try:
                if happening.kind == ibchan.MESSAGE:
                    happening.channel.post(happening.channel.receive(0))
                elif happening.kind == ibchan.ENDED:
                    happening.channel.close()
            except OSError:  # a client that is gone, or does not take its answers
                happening.channel.close()

ENDED comes behind the last message that was received: not while one waits, even when the peer is
gone. A program that does not want a message closes the channel.

Errors are OSError, or what Python makes of it by its errno: ConnectionRefusedError,
TimeoutError and so on; its text says what failed, and what to do about it. Times are in
seconds, None is without an end, and 0 does not wait: what cannot be done at once raises
BlockingIOError, what is not done in time TimeoutError. Any method may be called by any thread;
close() ends the calls that are waiting. An iteration over a server ends with an error when there is
nothing left for a client, as accept(2) does. The memory of a buffer is the caller's own again when a
call returns, other than post(), and Python keeps a bytearray from being resized meanwhile.
"""
import collections
import contextlib
import ctypes
import errno
import itertools
import os
import select
import sys
import threading
import time

__all__ = ["Channel", "Context", "Happening", "Server", "dial", "serve",
           "CONNECTED", "MESSAGE", "WRITABLE", "SENT", "REFUSED", "ENDED",
           "BY_PEER", "BY_THIS_SIDE", "BY_NETWORK", "BY_DEVICE"]

# What has happened, and by whom a channel has ended: ibchan_next_kind(3type), ibchan_by(3type).
CONNECTED, MESSAGE, WRITABLE, SENT, REFUSED, ENDED = 1, 2, 3, 4, 7, 8
BY_PEER, BY_THIS_SIDE, BY_NETWORK, BY_DEVICE = 1, 2, 3, 4

_MESSAGE_BYTES = 16384
_NEVER = -1
_LONGEST = 2 ** 62  # nanoseconds
_MOST = 2 ** 30  # bytes that a peer can make receive() allocate
_ERROR_ROOM = 512  # more than a struct ibchan_error has
_FIRST_VALUE = slice(24, 32)  # of its reason
_MAKING = 1  # seconds: far more than from a call of the library to the object around its handle

_library = ctypes.CDLL("libibchan.so.0")


class _Params(ctypes.Structure):
    """struct ibchan_message_params"""
    _fields_ = [("size", ctypes.c_uint32), ("messages", ctypes.c_uint32),
                ("message_bytes", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("timeout_ns", ctypes.c_int64), ("source", ctypes.c_char_p),
                ("context", ctypes.c_void_p)]


class _Told(ctypes.Structure):
    """struct ibchan_happening, whose end no one here reads"""
    _fields_ = [("kind", ctypes.c_uint32), ("by", ctypes.c_uint32),
                ("error", ctypes.c_int), ("reserved", ctypes.c_uint32),
                ("priv", ctypes.c_void_p), ("channel", ctypes.c_void_p),
                ("server", ctypes.c_void_p), ("listener", ctypes.c_void_p),
                ("request", ctypes.c_void_p), ("bytes", ctypes.c_void_p),
                ("length", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 32)]


Happening = collections.namedtuple("Happening", "kind channel server length buffer error by")
Happening.__doc__ = """What Context.next() tells: ibchan_happening(3type).

The kinds are those of ibchan_next_kind(3type), and by is one of ibchan_by(3type). A channel is the
same object each time, and takes attributes of the program's.
The error of ENDED is an OSError, or None when the peer has closed the channel in order; that of
SENT is None when the peer has received the message, which is the buffer.
"""


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
_post = _function("post_bytes", _handle, _handle, ctypes.c_size_t, _handle)
_agreed = _function("channel_message_params", _handle, _handle)
_context_open = _function("context_open", _handle, _handle)
_context_close = _function("context_close", _handle)
_next = _function("next", _handle, ctypes.c_int64, _handle, _handle)
_next_fd = _function("next_fd", _handle)
_set_priv = _function("channel_set_priv", _handle, _handle, returns=None)
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


def _late():
    return TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


def _params(messages, message_bytes, timeout):
    ns = _LONGEST if timeout is None else max(_ns(timeout), 1)
    return _Params(ctypes.sizeof(_Params), messages, message_bytes, 0, ns)


def _failure(code):
    return OSError(-code, _strerror(code).decode()) if code else None


def _descriptor(handle):
    result = _next_fd(handle)
    if result < 0:
        raise _failure(result)
    return result


@contextlib.contextmanager
def _within(context, params):
    """Makes an object within a context, which is not closed meanwhile."""
    if context is None:
        yield
        return
    with context._used() as params.context:
        yield


def _memory(buffer, writable):
    """An object of ctypes over a buffer, which cannot change its size as long as it lives."""
    if isinstance(buffer, bytes) and not writable:
        return ctypes.c_char_p(buffer), len(buffer)
    view = memoryview(buffer).cast("B")
    if view.readonly and not writable:
        return ctypes.c_char_p(bytes(view)), len(view)
    return (ctypes.c_char * len(view)).from_buffer(view), len(view)


def _address_of(memory):
    """Of the bytes that _memory() has made an object over."""
    if isinstance(memory, ctypes.c_char_p):
        return ctypes.c_void_p.from_buffer(memory).value
    return ctypes.addressof(memory)


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


class _Waiting(_Object):
    """Has calls that wait for a descriptor, until another thread closes the object."""

    def __init__(self, handle, end):
        try:
            self._closed, self._closing = os.pipe()
        except OSError:
            end(handle)
            raise
        super().__init__(handle)

    def _interrupt(self, handle):
        os.write(self._closing, b".")

    def _end_pipe(self):
        os.close(self._closed)
        os.close(self._closing)

    def _wait(self, descriptor, end):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(self._closed, select.POLLIN)
        left = _left(end)
        poll.poll(None if left is None else min(left * 1000, 2 ** 30))

    def _repeat(self, call, descriptor, timeout):
        """What call(handle) returns, once it is something that does not block."""
        end = _end_of(timeout)
        while True:
            with self._used() as handle:
                try:
                    return call(handle)
                except InterruptedError:
                    continue
                except BlockingIOError:
                    if timeout == 0:
                        raise
                    if _left(end) == 0:
                        raise _late() from None
                self._wait(descriptor(handle), end)


class Channel(_Object):
    """Carries messages between two programs. dial(), Server.take() and CONNECTED make them."""

    _interrupt = staticmethod(_break)
    _numbers = itertools.count(1, 2)  # odd ones, which are no server's handle
    _unreturned = []  # what peers may read for good

    def __init__(self, handle, message_bytes, context=None):
        self._message_bytes = message_bytes
        self._context = context
        self._number = next(self._numbers)
        self._lent = collections.deque()
        self._lent_lock = threading.RLock()
        super().__init__(handle)
        if context is not None:
            context._add(handle, self._number, self)

    def _end(self, handle):
        result = _channel_close(handle)
        # With any other result the kernel may not have ended it.
        if result not in (0, -errno.ECONNRESET):
            self._unreturned.append(self._lent)
        self._lent = collections.deque()
        if self._context is not None:
            self._context._forget(self._number, self)
        return result

    def __iter__(self):
        """The messages, until the peer has closed the channel."""
        return iter(self.receive, None)

    @property
    def message_bytes(self):
        """Up to which length both sides copy messages."""
        agreed = _Params(size=ctypes.sizeof(_Params))
        with self._used() as handle:
            _agreed(handle, ctypes.byref(agreed))
        return agreed.message_bytes

    def post(self, buffer):
        """Sends a message without waiting: True when it was copied, False when it is lent.

        A buffer that is lent must not be changed, and cannot be resized, until SENT tells of it.
        Raises BlockingIOError when the peer has no room: WRITABLE tells of some.
        """
        memory, length = _memory(buffer, False)
        with self._used() as handle:
            entry = (_address_of(memory), memory, buffer)
            with self._lent_lock:
                self._lent.append(entry)
            lent = False
            try:
                lent = _call(_post, handle, memory, length) == 1
            finally:
                if not lent:
                    with self._lent_lock:
                        self._lent.remove(entry)
        return not lent

    def _given_back(self, address):
        with self._lent_lock:
            for entry in list(self._lent):
                if entry[0] == address:
                    self._lent.remove(entry)
                    return entry[2]
        return None

    def send(self, buffer, timeout=None):
        """Sends a message: a short one is copied, and a long one was received when this returns.

        Waits while the peer has not received earlier ones. With TimeoutError nothing was sent; with
        ConnectionAbortedError a long message was under way, and the channel is broken. A signal's
        handler runs when that is over.
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
                except BlockingIOError:
                    if timeout == 0:
                        raise
                    raise _late() from None
                except OSError as failure:
                    if failure.errno != errno.ENODATA:
                        raise
                    return None


class Server(_Waiting):
    """Listens. An iteration takes one client after the other."""

    def __init__(self, handle, message_bytes, context=None):
        self._message_bytes = message_bytes
        self._context = context
        super().__init__(handle, _server_close)
        if context is not None:
            context._add(handle, handle, self)

    def _end(self, handle):
        self._end_pipe()
        result = _server_close(handle)
        if self._context is not None:
            self._context._forget(handle, self)
        return result

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

    def take(self, timeout=None):
        """The channel of the next client. Raises TimeoutError."""
        return self._repeat(self._take, _server_fd, timeout)

    def _take(self, handle):
        channel = ctypes.c_void_p()
        _call(_take, handle, 0, ctypes.byref(channel))
        taken = self._channel(channel.value)
        if self._context is not None:
            self._context._close_late(taken)
        return taken

    def _channel(self, handle):
        return Channel(handle, self._message_bytes, self._context)


class Context(_Waiting):
    """Where dial() and serve() make objects of which one loop is to hear.

    An iteration tells one happening after the other. With fileno(), asyncio and select tell when
    there is one: then call next(0) until it raises BlockingIOError. Channels and servers that are
    made in it stay until they are closed, and closing it closes those that are left.
    """

    def __init__(self):
        context = ctypes.c_void_p()
        _call(_context_open, ctypes.byref(context))
        self._members = {}  # of numbers of channels and handles of servers, until they are closed
        self._awaited = []  # [handle, member]: of which was told before there was an object
        self._left = None  # the handle, when it was closed with members in it
        self._changed = threading.Condition()
        super().__init__(context.value, _context_close)

    def __iter__(self):
        while True:
            yield self.next()

    def _add(self, handle, key, member):
        with self._changed:
            self._members[key] = member
            if key != handle:
                _set_priv(handle, key)
            for place in self._awaited:
                if place[0] == handle:
                    place[1] = member
            self._changed.notify_all()

    def _forget(self, key, member):
        """After the member was closed."""
        is_own = os.getpid() == self._process
        # Of a child: another thread of the parent may have had the lock.
        with self._changed if is_own else contextlib.nullcontext():
            if self._members.get(key) is member:
                del self._members[key]
            if self._left and not self._members:
                handle, self._left = self._left, None
                _context_close(handle)

    def _member(self, handle, key):
        """None when it is closed. Waits for the thread that is making it, which has its handle."""
        with self._changed:
            if key in self._members:
                return self._members[key]
            if key and key != handle:
                return None
            for member in list(self._members.values()):
                if member._handle == handle:
                    return member
            place = [handle, None]
            self._awaited.append(place)
            try:
                self._changed.wait_for(lambda: place[1], _MAKING)
            finally:
                self._awaited = [other for other in self._awaited if other is not place]
            return place[1]

    def _close_members(self):
        with self._changed:
            members = list(self._members.values())
        for member in members:
            with contextlib.suppress(OSError):
                member.close()

    def _close_late(self, member):
        """Closes what was made while another thread has closed the context."""
        if not self._handle:
            with contextlib.suppress(OSError):
                member.close()

    def close(self):
        """Closes channels and servers that are left, and ends it, as every close() does."""
        if os.getpid() != self._process:
            super().close()
            return
        self._close_members()
        try:
            super().close()
        finally:
            self._close_members()  # those that calls have made meanwhile

    def _end(self, handle):
        """The last member ends it, where some are left."""
        self._end_pipe()
        is_own = os.getpid() == self._process
        with self._changed if is_own else contextlib.nullcontext():
            if self._members:
                self._left = handle
                return 0
        return _context_close(handle)

    def fileno(self):
        """For select and asyncio: readable while next() has something to tell."""
        with self._used() as handle:
            return _descriptor(handle)

    def next(self, timeout=None):
        """The next Happening. Raises TimeoutError; BlockingIOError where the timeout is 0."""
        return self._repeat(self._next, _descriptor, timeout)

    def _next(self, handle):
        while True:
            told = _Told()
            _call(_next, handle, 0, ctypes.byref(told))
            happening = self._happening(told)
            if happening:
                return happening

    def _happening(self, told):
        server = self._member(told.server, told.server) if told.server else None
        if told.kind != CONNECTED:
            channel = self._member(told.channel, told.priv) if told.channel else None
        elif server:
            channel = server._channel(told.channel)
        else:
            channel = None
            _channel_close(told.channel)
        if not server and not (channel and channel._handle):
            return None  # another thread has closed it meanwhile
        buffer = channel._given_back(told.bytes) if told.kind == SENT else None
        error = None if told.error == -errno.ENODATA else _failure(told.error)
        return Happening(told.kind, channel, server, told.length, buffer, error, told.by)


def dial(host, service, *, messages=0, message_bytes=_MESSAGE_BYTES, timeout=60,
         source=None, context=None):
    """Connects to a server: a Channel. What the arguments mean ibchan_dial(3) says."""
    channel = ctypes.c_void_p()
    params = _params(messages, message_bytes, timeout)
    params.source = _name(source)
    with _within(context, params):
        _call(_dial, _name(host), _name(service), ctypes.byref(params), ctypes.byref(channel))
        dialed = Channel(channel.value, message_bytes or _MESSAGE_BYTES, context)
        if context is not None:
            context._close_late(dialed)
        return dialed


def serve(host=None, service=None, *, messages=0, message_bytes=_MESSAGE_BYTES, timeout=60,
          context=None):
    """Listens for clients: a Server. What the arguments mean ibchan_serve(3) says."""
    server = ctypes.c_void_p()
    params = _params(messages, message_bytes, timeout)
    with _within(context, params):
        _call(_serve, _name(host), _name(service), ctypes.byref(params), ctypes.byref(server))
        return Server(server.value, message_bytes or _MESSAGE_BYTES, context)
