/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libibchan for C++11: owners of the objects of <ibchan.h>, which can be moved and not copied,
 * scopes that end however a block is left, and errors that are thrown. Nothing here but is
 * inline; each owner gives its C handle by get(), for all calls of <ibchan.h>.
 */
#ifndef _IBCHAN_HPP
#define _IBCHAN_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include <ibchan.h>

namespace ibchan {

/* A call that failed: what() says why, and what to do about it. */
class error : public std::runtime_error {
	int code_;

public:
	explicit error(int code) : std::runtime_error(::ibchan_strerror(code)), code_(code) {}
	explicit error(const struct ::ibchan_error &details)
		: std::runtime_error(::ibchan_error_string(&details)), code_(details.code) {}

	/* A negative errno, as the call returned it. */
	int code() const noexcept { return code_; }
};

/* Passes on what a call returned that gives no details, unless it failed. */
inline int check(int result)
{
	if (result < 0)
		throw error(result);
	return result;
}

/* The same for one that gives them. */
inline int check(int result, const struct ::ibchan_error &details)
{
	if (result < 0)
		throw error(details);
	return result;
}

/* Owns an object of the library. Members are destroyed in reverse order, as the library wants. */
template <typename T, int (*End)(T *)>
class handle {
	T *object_;

public:
	explicit handle(T *object = nullptr) noexcept : object_(object) {}
	handle(handle &&other) noexcept : object_(other.release()) {}
	handle(const handle &) = delete;
	~handle() { End(object_); }

	handle &operator=(const handle &) = delete;
	handle &operator=(handle &&other) noexcept
	{
		handle old(std::move(other));

		std::swap(object_, old.object_);
		return *this;
	}

	T *get() const noexcept { return object_; }
	explicit operator bool() const noexcept { return object_; }

	/* The caller has to end the object from here on. */
	T *release() noexcept
	{
		T *object = object_;

		object_ = nullptr;
		return object;
	}
};

using context = handle<struct ::ibchan_context, ::ibchan_context_close>;
using device = handle<struct ::ibchan_device, ::ibchan_device_close>;
using pd = handle<struct ::ibchan_pd, ::ibchan_pd_free>;
using mr = handle<struct ::ibchan_mr, ::ibchan_mr_dereg>;
using cq = handle<struct ::ibchan_cq, ::ibchan_cq_destroy>;
using prepared = handle<struct ::ibchan_prepared, ::ibchan_prepared_destroy>;
using listener = handle<struct ::ibchan_listener, ::ibchan_listener_close>;

/* How long a call may take. */
using duration = std::chrono::nanoseconds;
constexpr duration never{IBCHAN_TIMEOUT_NEVER};

/* The most bytes that a peer can make a receive allocate. */
constexpr unsigned long long most_bytes = 0x40000000;

/*
 * Works that end before it does, however its block is left, by a thrown error as well. The
 * pending works, and the memory of their requests, have to be declared before it.
 */
class scope {
	struct ::ibchan_scope scope_;

public:
	scope() { ::ibchan_scope_begin(&scope_); }
	explicit scope(duration timeout) { ::ibchan_scope_begin_timeout(&scope_, timeout.count()); }
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
	~scope() { ::ibchan_scope_end(&scope_); }

	void post(struct ::ibchan_pending &pending, struct ::ibchan_channel *channel,
		  const struct ::ibchan_submit_wr &wr)
	{
		struct ::ibchan_error details;

		check(::ibchan_scope_post(&scope_, &pending, channel, &wr, &details), details);
	}

	struct ::ibchan_scope *get() noexcept { return &scope_; }
};

/* Of dial() and server::take(), or any other one; only the former two carry messages of bytes. */
class channel : public handle<struct ::ibchan_channel, ::ibchan_channel_close> {
public:
	using handle::handle;

	/* A message: ibchan_send_bytes(3). */
	void send(const void *bytes, std::size_t length, duration timeout = never)
	{
		struct ::ibchan_error details;

		check(::ibchan_send_bytes(get(), bytes, length, timeout.count(), &details), details);
	}

	void send(const std::string &message, duration timeout = never)
	{
		send(message.data(), message.size(), timeout);
	}

	/* How long the next message is; less than 0 when the peer has closed. */
	ssize_t receive(void *buf, std::size_t room, duration timeout = never)
	{
		struct ::ibchan_error details;
		ssize_t length = ::ibchan_receive_bytes(get(), buf, room, timeout.count(), &details);

		if (length < 0 && length != -ENODATA)
			check(static_cast<int>(length), details);
		return length;
	}

	/*
	 * The next message; false when the peer has closed. One of more than 2^30 bytes throws, and
	 * stays for the call above.
	 */
	bool receive(std::string &message, duration timeout = never)
	{
		struct ::ibchan_error details;
		ssize_t length = ::ibchan_receive_bytes(get(), nullptr, 0, timeout.count(), &details);

		/* It tells how long the message is that does not fit, and keeps it for any thread. */
		while (length == -EMSGSIZE &&
		       details.reason.code == IBCHAN_REASON_MESSAGE_TOO_LONG &&
		       details.reason.value[0] <= most_bytes) {
			message.resize(static_cast<std::size_t>(details.reason.value[0]));
			length = ::ibchan_receive_bytes(get(), &message[0], message.size(),
							timeout.count(), &details);
		}
		if (length == -ENODATA)
			return false;
		if (length < 0)
			check(static_cast<int>(length), details);
		message.resize(static_cast<std::size_t>(length));
		return true;
	}

	/* The next message; empty also when the peer has closed. */
	std::string receive(duration timeout = never)
	{
		std::string message;

		if (!receive(message, timeout))
			message.clear();
		return message;
	}
};

/* Connects to a server: ibchan_dial(3). */
inline channel dial(const std::string &host, const std::string &service,
		    const struct ::ibchan_message_params *params = nullptr)
{
	struct ::ibchan_channel *object;
	struct ::ibchan_error details;

	check(::ibchan_dial(host.c_str(), service.c_str(), params, &object, &details), details);
	return channel(object);
}

/* Listens for clients: ibchan_serve(3). */
class server : public handle<struct ::ibchan_server, ::ibchan_server_close> {
	static struct ::ibchan_server *serve(const char *host, const char *service,
					     const struct ::ibchan_message_params *params)
	{
		struct ::ibchan_server *object;
		struct ::ibchan_error details;

		check(::ibchan_serve(host, service, params, &object, &details), details);
		return object;
	}

public:
	explicit server(const std::string &service,
			const struct ::ibchan_message_params *params = nullptr)
		: handle(serve(nullptr, service.c_str(), params)) {}

	/* The channel of the next client. */
	channel take(duration timeout = never)
	{
		struct ::ibchan_channel *object;
		struct ::ibchan_error details;

		check(::ibchan_take(get(), timeout.count(), &object, &details), details);
		return channel(object);
	}
};

} /* namespace ibchan */

#endif /* _IBCHAN_HPP */
