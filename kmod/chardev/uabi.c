// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dispatches the ioctls of /dev/ibchan. One list, IBCHAN_COMMANDS, makes the table and the
 * room for the copy of a command. The bodies are in commands.c, connect.c, listener.c,
 * context.c and submit.c.
 *
 * A body works on the kernel's copy. The dispatcher copies in, runs the body,
 * copies out, also after a refusal, and only then publishes the object that the
 * body made; if anything failed it undoes it. So bodies have no unwinding.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "submit.h"

struct any_header {
	__u32 size;
	__u32 flags;
};

#define COMMAND_MEMBER(nr, NAME, name) struct ibchan_cmd_##name name;
union any_command {
	IBCHAN_COMMANDS(COMMAND_MEMBER)
	struct any_header header;
};

#define ANY_MM	1	/* any process that has the file may */

/* How a command is run; a place of a member is its offset, and 0: the struct has none */
struct command {
	unsigned int number;	/* of the ioctl */
	u32 size;	/* of the struct */
	u32 first_size;	/* of its first version */
	u32 flags;	/* known */
	u32 rights;	/* ANY_MM, or 0: the process that opened the file */
	u32 reserved;	/* place of the word that has to be 0 */
	u32 reason;	/* place of the reason, which is empty until there is one */
	u32 handle;	/* place of the handle of the object that the command is about */
	enum ibchan_object_type type;	/* of that object */
	int (*run)(struct ibchan_call *call);	/* the body */
};

/*
 * Of each command: the flags that it knows, its rights, the last member of its struct's first
 * version, and the members that the dispatcher looks after. A command that has grown still serves
 * programs that were built with its first version.
 */
#define PLACE(name, member)		offsetof(struct ibchan_cmd_##name, member)
#define RESERVED(name)			.reserved = PLACE(name, reserved),
#define REASON(name)			.reason = PLACE(name, reason),
#define ABOUT(name, member, kind)	.handle = PLACE(name, member), .type = OBJECT_##kind,

#define TRAITS_query		0, ANY_MM, out.pinned_bytes,
#define TRAITS_device_query	IBCHAN_DEVICE_QUERY_HANDLE, ANY_MM, out.comp_vectors,	\
				RESERVED(device_query)
#define TRAITS_port_query	0, ANY_MM, out.gid,
#define TRAITS_device_open	0, 0, reserved, RESERVED(device_open)
#define TRAITS_pd_alloc		0, 0, out_pd, ABOUT(pd_alloc, device, DEVICE)
#define TRAITS_mr_reg		0, 0, reason, REASON(mr_reg) ABOUT(mr_reg, pd, PD)
#define TRAITS_cq_create	IBCHAN_CQ_CREATE_SOLICITED, 0, reason,	\
				REASON(cq_create) ABOUT(cq_create, device, DEVICE)
#define TRAITS_channel_build	0, 0, reason,				\
				REASON(channel_build) ABOUT(channel_build, pd, PD)
#define TRAITS_channel_handshake 0, 0, reason,				\
				RESERVED(channel_handshake) REASON(channel_handshake) \
				ABOUT(channel_handshake, channel, CHANNEL)
#define TRAITS_channel_query	0, ANY_MM, out.endpoint,		\
				RESERVED(channel_query) ABOUT(channel_query, channel, CHANNEL)
#define TRAITS_channel_break	0, 0, reserved,				\
				RESERVED(channel_break) ABOUT(channel_break, channel, CHANNEL)
#define TRAITS_submit		IBCHAN_SUBMIT_FLAGS, 0, reason,
#define TRAITS_destroy		0, ANY_MM, reserved, RESERVED(destroy)
#define TRAITS_mr_reg_dmabuf	0, 0, reason,				\
				RESERVED(mr_reg_dmabuf) REASON(mr_reg_dmabuf) \
				ABOUT(mr_reg_dmabuf, pd, PD)
#define TRAITS_channel_connect	IBCHAN_CONNECT_FLAGS, 0, reason,	\
				RESERVED(channel_connect) REASON(channel_connect) \
				ABOUT(channel_connect, channel, CHANNEL)
#define TRAITS_channel_connection IBCHAN_DEADLINE, ANY_MM, reserved, RESERVED(channel_connection)
#define TRAITS_listener_create	0, 0, reason, REASON(listener_create)
#define TRAITS_request_take	0, 0, reserved,				\
				RESERVED(request_take) ABOUT(request_take, listener, LISTENER)
#define TRAITS_request_accept	IBCHAN_CONNECT_FLAGS, 0, reason,	\
				RESERVED(request_accept) REASON(request_accept) \
				ABOUT(request_accept, channel, CHANNEL)
#define TRAITS_request_reject	0, 0, reserved, RESERVED(request_reject)
#define TRAITS_event_take	0, 0, out_events,
#define TRAITS_route_query	0, ANY_MM, reserved, REASON(route_query)
#define TRAITS_gid_query	0, ANY_MM, out.ndev_name,
#define TRAITS_channel_history	0, ANY_MM, reserved,			\
				RESERVED(channel_history) ABOUT(channel_history, channel, CHANNEL)

#define COMMAND_ROW(nr, NAME, name)	COMMAND_TRAITS(nr, NAME, name, TRAITS_##name)
#define COMMAND_TRAITS(...)		COMMAND_ROW_OF(__VA_ARGS__)
#define COMMAND_ROW_OF(nr, NAME, name, known, granted, last, ...)	\
	[nr] = {							\
		.number = IBCHAN_CMD_##NAME,				\
		.size = sizeof(struct ibchan_cmd_##name),		\
		.first_size = offsetofend(struct ibchan_cmd_##name, last), \
		.flags = known,						\
		.rights = granted,					\
		.run = ibchan_run_##name,				\
		__VA_ARGS__						\
	},
static const struct command commands[] = {
	IBCHAN_COMMANDS(COMMAND_ROW)
};

#define SUBMIT		(&commands[_IOC_NR(IBCHAN_CMD_SUBMIT)])

/* The words that a submit reads; the kernel writes the reason behind them when there is one. */
#define SUBMIT_WORDS	(offsetof(struct ibchan_cmd_submit, reason) / sizeof(u64))
static_assert(offsetof(struct ibchan_cmd_submit, reason) % sizeof(u64) == 0);
static_assert(offsetofend(struct ibchan_cmd_submit, reason) == sizeof(struct ibchan_cmd_submit));

/* Of a submit: the bits that make the kernel refuse it, and leave the caller's struct as it is. */
#define SUBMIT_UNKNOWN_FLAGS	(~(SUBMIT->flags | IBCHAN_ANSWERED))

/* Copies any command, of any size. */
static noinline int copy_any(const struct command *command, union any_command *cmd,
			     void __user *user)
{
	struct ibchan_cmd_submit __user *submit = user;
	u32 size;
	int ret;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < command->first_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(cmd, command->size, user, size);
	if (ret)
		return ret;
	cmd->header.size = size;
	if (command != SUBMIT || cmd->header.flags & SUBMIT_UNKNOWN_FLAGS)
		return 0;
	return put_user(0, &submit->entry_num);
}

/*
 * A submit of this version is copied word by word: so few bytes are not worth a string instruction.
 * Of its reason the last word shows that the struct is there. The count of any submit whose flags
 * are known becomes 0 before anything is posted: if the caller's struct cannot be written, nothing
 * has happened yet.
 */
static __always_inline int copy_in(const struct command *command, union any_command *cmd,
				   void __user *user)
{
	struct ibchan_cmd_submit __user *submit = user;
	u64 __user *from = user;
	u64 *to = (u64 *)cmd;
	u64 last __maybe_unused;
	u32 i;

	if (unlikely(command != SUBMIT) || !user_access_begin(user, sizeof(*submit)))
		return copy_any(command, cmd, user);
	unsafe_get_user(to[0], &from[0], fault);
	if (unlikely(cmd->header.size != sizeof(*submit))) {
		user_access_end();
		return copy_any(command, cmd, user);
	}
#pragma GCC unroll 8
	for (i = 1; i < SUBMIT_WORDS; i++)
		unsafe_get_user(to[i], &from[i], fault);
	unsafe_get_user(last, &submit->reason.value[2], fault);
	if (likely(!(cmd->header.flags & SUBMIT_UNKNOWN_FLAGS)))
		unsafe_put_user(0, &submit->entry_num, fault);
	user_access_end();
	return 0;
fault:
	user_access_end();
	return -EFAULT;
}

static void undo(struct ibchan_call *call)
{
	const struct ibchan_cmd_event_take *take = call->cmd;
	struct ibchan_object *channel;

	if (call->new)
		ibchan_object_abort(call->ctx, call->new);
	if (call->new_file)
		fput(call->new_file);
	if (call->new_fd >= 0)
		put_unused_fd(call->new_fd);
	if (!call->events)
		return;
	guard(rcu)();
	/* The channel may have been closed meanwhile. */
	channel = ibchan_object_find(call->ctx, take->out_channel, OBJECT_CHANNEL);
	if (channel)
		ibchan_object_event(channel, call->events);
}

/*
 * The answer goes out after a refusal too, because it says why. The caller gets as many bytes as it
 * has said its struct has; the rest of a longer struct stays as it is.
 */
static noinline int answer(const struct command *command, struct ibchan_call *call, int ret)
{
	struct any_header __user *user = call->user;
	struct any_header *header = call->cmd;

	if (!copy_to_user(user, header, min(header->size, command->size)))
		return ret;
	/* The flags may have gone out before the page that could not be written. */
	put_user(header->flags & ~IBCHAN_ANSWERED, &user->flags);
	/* The end of a wait that is run again stands in the answer. */
	return !ret || ret == -ERESTARTNOHAND ? -EFAULT : ret;
}

/* Of a submit that succeeds these are all members that have changed. */
static __always_inline int answer_submit(struct ibchan_call *call, int ret)
{
	struct ibchan_cmd_submit __user *submit = call->user;
	struct ibchan_cmd_submit *cmd = call->cmd;

	cmd->flags |= IBCHAN_ANSWERED;
	if (likely(!ret) && user_write_access_begin(submit, sizeof(*submit))) {
		unsafe_put_user(cmd->entry_num, &submit->entry_num, fault);
		unsafe_put_user(cmd->out_ready, &submit->out_ready, fault);
		unsafe_put_user(cmd->flags, &submit->flags, fault);
		user_write_access_end();
		return 0;
fault:
		user_write_access_end();
	}
	return answer(SUBMIT, call, ret);
}

/* Does what the bodies have in common. Submit looks after all of it itself. */
static int prepare(const struct command *command, struct ibchan_call *call)
{
	int ret = command->rights ? 0 : ibchan_caller_check(call->ctx);

	if (ret)
		return ret;
	if (command->reason)
		*(struct ibchan_reason *)(call->cmd + command->reason) = (struct ibchan_reason) {};
	if (command->reserved && *(u32 *)(call->cmd + command->reserved))
		return -EINVAL;
	if (!command->handle)
		return 0;
	call->object = ibchan_call_find(call, *(u32 *)(call->cmd + command->handle), command->type);
	return PTR_ERR_OR_ZERO(call->object);
}

/* Runs any command but submit. */
static noinline int run(const struct command *command, struct ibchan_call *call)
{
	struct any_header *header = call->cmd;
	int ret;

	call->object = NULL;
	call->new = NULL;
	call->new_file = NULL;
	call->new_fd = -1;
	call->events = 0;
	call->num_held = 0;
	ret = prepare(command, call) ?: command->run(call);
	/* No object is held while the answer is written: a page may be long in coming. */
	ibchan_call_release(call);
	header->flags |= IBCHAN_ANSWERED;
	ret = answer(command, call, ret);
	/* Nothing fails from here on. */
	if (ret)
		undo(call);
	else if (call->new)
		ibchan_object_publish(call->ctx, call->new);
	if (!ret && call->new_file)
		fd_install(call->new_fd, call->new_file);
	return ret;
}

/* Returns what <linux/ibchan.h> says. */
static long ibchan_ioctl(struct file *file, unsigned int number, unsigned long arg)
{
	/* A processor that guesses must not call beyond the table, where numbers get row 0. */
	const struct command *command = likely(number == IBCHAN_CMD_SUBMIT) ? SUBMIT :
		&commands[array_index_nospec(_IOC_NR(number), ARRAY_SIZE(commands))];
	/* Copied in over the whole size of the command. */
	union any_command cmd __uninitialized;
	struct ibchan_call call __uninitialized;
	int ret;

	if (command->number != number)
		return -ENOTTY;
	call.ctx = file->private_data;
	call.file = file;
	call.cmd = &cmd;
	call.user = (void __user *)arg;
	ret = copy_in(command, &cmd, call.user);
	if (ret)
		return ret;
	cmd.header.flags &= ~IBCHAN_ANSWERED;
	if (unlikely(cmd.header.flags & ~command->flags))
		return -EOPNOTSUPP;
	return likely(command == SUBMIT) ? answer_submit(&call, ibchan_run_submit(&call)) :
					   run(command, &call);
}

const struct file_operations ibchan_fops = {
	.owner = THIS_MODULE,
	.open = ibchan_context_open,
	.release = ibchan_context_release,
	.poll = ibchan_context_poll,
	.unlocked_ioctl = ibchan_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};
