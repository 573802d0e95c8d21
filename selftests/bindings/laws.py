# SPDX-License-Identifier: GPL-2.0-only
"""laws.py NAME: one test of the Python binding; shim_python_test runs each. Exit code 0: passed."""
import array
import contextlib
import errno
import gc
import os
import selectors
import signal
import subprocess
import sys
import threading
import time

import ibchan

HOST = "10.77.0.1"
PATIENCE = 60 if os.environ.get("IBCHAN_SLOW", "0") != "0" else 10


class Call(threading.Thread):
    """A call in a thread of its own, and what it returned or raised."""

    def __init__(self, function, *arguments, **keywords):
        super().__init__(daemon=True)
        self.function, self.arguments, self.keywords = function, arguments, keywords
        self.result = self.error = None
        self.start()

    def run(self):
        try:
            self.result = self.function(*self.arguments, **self.keywords)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def end(self):
        self.join(PATIENCE)
        assert not self.is_alive(), "it has not returned"
        if self.error:
            raise self.error
        return self.result


@contextlib.contextmanager
def pair(**how):
    with ibchan.serve(**how) as server:
        dialed = Call(ibchan.dial, HOST, server.port, **how)
        with server.take(PATIENCE) as taken, dialed.end() as client:
            yield client, taken


def raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        return error
    raise AssertionError("nothing was raised")


def until(holds):
    """Polls a condition that nothing announces."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it does not become true"
        time.sleep(0.002)


IOCTL, POLL = "16", "7"  # of x86-64


def sleeps(call, number=IOCTL):
    """Whether its thread waits in the kernel, and not for the interpreter."""
    with open(f"/proc/self/task/{call.native_id}/syscall", encoding="ascii") as file:
        return file.read().split()[0] == number


def buffers_of_any_kind_come_as_they_were_sent():
    with pair() as (client, taken):
        numbers = array.array("I", range(100))
        for buffer in (b"bytes", bytearray(b"bytearray"), memoryview(b"a view"),
                       memoryview(bytearray(b"a part"))[2:], numbers):
            client.send(buffer)
            assert taken.receive(PATIENCE) == bytes(memoryview(buffer).cast("B"))
        room = array.array("I", [0] * 200)
        taken.send(numbers)
        assert client.receive_into(room, PATIENCE) == 400
        assert room[:100] == numbers and not any(room[100:])


def a_buffer_that_is_being_sent_cannot_be_resized():
    with pair(messages=1) as (client, taken):
        client.send(b"there is one receive")
        buffer = bytearray(b"x" * 5000)
        call = Call(client.send, buffer, PATIENCE)
        until(lambda: call.native_id and sleeps(call))
        raises(BufferError, buffer.extend, b"more")
        assert taken.receive(PATIENCE) == b"there is one receive"
        call.end()
        buffer.extend(b"more")
        assert taken.receive(PATIENCE) == b"x" * 5000


def a_buffer_that_is_forgotten_while_it_is_sent_comes_whole():
    with pair(messages=1) as (client, taken):
        client.send(b"there is one receive")
        call = Call(client.send, bytearray(b"y" * 9000), PATIENCE)
        call.arguments = None
        until(lambda: call.native_id and sleeps(call))
        gc.collect()
        others = [bytearray(b"z" * 9000) for _ in range(100)]
        assert taken.receive(PATIENCE) == b"there is one receive"
        assert taken.receive(PATIENCE) == b"y" * 9000
        call.end()
        assert len(others) == 100


def a_buffer_that_is_received_into_cannot_be_resized():
    with pair() as (client, taken):
        buffer = bytearray(64)
        call = Call(taken.receive_into, buffer, PATIENCE)
        until(lambda: call.native_id and sleeps(call))
        raises(BufferError, buffer.clear)
        client.send(b"now")
        assert call.end() == 3 and buffer[:3] == b"now"
        buffer.clear()


def a_buffer_of_two_receives_has_what_the_cpu_copied_last():
    with pair() as (client, taken):
        buffer = bytearray(8)
        calls = [Call(taken.receive_into, buffer, PATIENCE) for _ in range(2)]
        client.send(b"aaaaaaaa")
        client.send(b"bbbbbbbb")
        assert [call.end() for call in calls] == [8, 8]
        assert buffer in (b"aaaaaaaa", b"bbbbbbbb")


def messages_of_no_bytes_and_of_many_come_as_they_were_sent():
    with pair() as (client, taken):
        client.send(b"")
        assert taken.receive(PATIENCE) == b""
        client.send(b"it stays")
        failure = raises(OSError, taken.receive_into, bytearray(), PATIENCE)
        assert failure.errno == errno.EMSGSIZE and failure.value == 8
        assert taken.receive(PATIENCE) == b"it stays"
        call = Call(client.send, bytearray(b"l" * 100000), PATIENCE)
        assert taken.receive(PATIENCE) == b"l" * 100000
        call.end()


def next_is(context, kind, channel=None):
    happening = context.next(PATIENCE)
    assert happening.kind == kind, happening
    assert channel is None or happening.channel is channel, happening
    return happening


@contextlib.contextmanager
def loop():
    """A context with a server, a client of it elsewhere, and the channel to that."""
    how = {"messages": 2, "message_bytes": 256}
    with ibchan.Context() as context:
        server = ibchan.serve(context=context, **how)
        dialed = Call(ibchan.dial, HOST, server.port, **how)
        told = next_is(context, ibchan.CONNECTED)
        assert told.server is server
        with dialed.end() as client:
            yield context, client, told.channel


def a_loop_takes_the_messages_that_a_selector_tells_of():
    with loop() as (context, client, taken):
        selector = selectors.DefaultSelector()
        selector.register(context, selectors.EVENT_READ)
        raises(BlockingIOError, context.next, 0)
        assert not selector.select(0)
        client.send(b"one")
        assert selector.select(PATIENCE)
        assert next_is(context, ibchan.MESSAGE, taken).length == 3
        assert taken.receive(0) == b"one"
        raises(BlockingIOError, taken.receive, 0)
        selector.unregister(context)


def a_loop_is_told_of_the_end_once_and_by_whom():
    with loop() as (context, client, taken):
        client.close()
        told = next_is(context, ibchan.ENDED, taken)
        assert told.error is None and told.by == ibchan.BY_PEER
        raises(TimeoutError, context.next, 0.05)
        taken.close()
        raises(BlockingIOError, context.next, 0)


def a_loop_posts_when_there_is_room_and_lends_what_is_long():
    with loop() as (context, client, taken):
        assert taken.message_bytes == 256
        assert taken.post(b"one") and taken.post(b"two")
        raises(BlockingIOError, taken.post, b"three")
        assert client.receive(PATIENCE) == b"one" and client.receive(PATIENCE) == b"two"
        next_is(context, ibchan.WRITABLE, taken)
        long = bytearray(b"l" * 100000)
        assert not taken.post(long)
        raises(BufferError, long.clear)
        assert client.receive(PATIENCE) == long
        told = next_is(context, ibchan.SENT, taken)
        assert told.buffer is long and told.error is None
        del told
        long.clear()


def a_close_of_a_context_ends_the_next_of_another_thread():
    context = ibchan.Context()
    call = Call(context.next)
    until(lambda: call.native_id and sleeps(call, POLL))
    context.close()
    assert raises(OSError, call.end).errno == errno.EBADF


def memory_that_is_read_only_is_not_received_into():
    with pair() as (client, taken):
        client.send(b"no")
        raises(TypeError, taken.receive_into, b"    ", PATIENCE)
        assert taken.receive(PATIENCE) == b"no"


def a_close_ends_the_calls_of_other_threads():
    with pair() as (client, _):
        call = Call(client.receive)
        until(lambda: call.native_id and sleeps(call))
        client.close()
        assert raises(OSError, call.end).errno in (errno.ECANCELED, errno.EBADF)
        assert raises(OSError, client.send, b"late").errno == errno.EBADF
        client.close()


def a_close_in_a_handler_ends_the_call_that_it_has_interrupted():
    with pair() as (client, taken):
        signal.signal(signal.SIGALRM, lambda number, frame: taken.close())
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert raises(OSError, taken.receive, PATIENCE).errno in (errno.ECANCELED, errno.EBADF)
        assert raises(OSError, client.receive, PATIENCE).errno == errno.ECONNRESET


def a_child_that_was_forked_beside_a_call_can_close():
    with pair() as (client, taken):
        call = Call(taken.receive)
        until(lambda: call.native_id and sleeps(call, IOCTL))
        child = os.fork()
        if not child:
            signal.alarm(PATIENCE)  # which kills it
            taken.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        client.send(b"still there")
        assert call.end() == b"still there"


def a_close_ends_the_take_of_another_thread():
    server = ibchan.serve()
    call = Call(server.take)
    until(lambda: call.native_id and sleeps(call, POLL))
    server.close()
    assert raises(OSError, call.end).errno == errno.EBADF


def a_channel_that_is_dropped_ends_for_its_peer():
    server = ibchan.serve()
    dialed = Call(ibchan.dial, HOST, server.port)
    taken = server.take(PATIENCE)
    client = dialed.end()
    del dialed
    client.send(b"last words")
    del client
    gc.collect()
    assert taken.receive(PATIENCE) == b"last words"
    assert taken.receive(PATIENCE) is None
    taken.close()
    server.close()


def errors_are_those_that_python_has():
    assert "nobody listens" in str(raises(ConnectionRefusedError, ibchan.dial, HOST, 7724))
    with ibchan.serve() as server:
        raises(BlockingIOError, server.take, 0)
        raises(TimeoutError, server.take, 0.05)
        raises(ValueError, server.take, -1)
    with pair(messages=1) as (client, taken):
        raises(TimeoutError, taken.receive, 0.05)
        client.send(b"fills the room")
        raises(TimeoutError, client.send, b"more", 0.05)


def a_handler_that_raises_ends_a_receive():
    def handler(number, frame):
        raise KeyboardInterrupt

    with pair() as (client, taken):
        signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            taken.receive()
            raise AssertionError("nothing was raised")
        except KeyboardInterrupt:
            pass
        client.send(b"still there")
        assert taken.receive(PATIENCE) == b"still there"


def a_handler_that_returns_ends_nothing():
    with pair() as (client, taken):
        seen = []
        signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        raises(TimeoutError, taken.receive, 0.5)
        assert seen
        client.send(b"still there")
        assert taken.receive(PATIENCE) == b"still there"


def a_child_that_was_forked_has_nothing_of_it():
    with pair() as (client, taken):
        child = os.fork()
        if not child:
            raises(PermissionError, client.send, b"no")
            raises(PermissionError, taken.receive, 0)
            client.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        client.send(b"mine")
        assert taken.receive(PATIENCE) == b"mine"


def the_shortest_programs_carry_their_message():
    folder = os.path.dirname(os.path.abspath(__file__))
    program = [sys.executable, "-B", folder + "/../../userspace/examples/short.py"]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as server:
        try:
            until(lambda: not subprocess.call([*program, HOST], stderr=subprocess.DEVNULL))
            assert server.communicate(timeout=PATIENCE)[0] == b"hello, server\n"
        finally:
            server.kill()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
