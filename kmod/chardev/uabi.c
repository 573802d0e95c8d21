// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctl dispatcher. One list, IBCHAN_COMMANDS, makes the table and the room for the copy
 * of a command. The bodies are in commands.c, connect.c, listener.c, event.c, query.c and
 * submit.c.
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
#include "connect.h"
#include "query.h"
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

/* Flags that a command knows. */
#define FLAGS_query		0
#define FLAGS_device_query	IBCHAN_DEVICE_QUERY_HANDLE
#define FLAGS_port_query	0
#define FLAGS_device_open	0
#define FLAGS_pd_alloc		0
#define FLAGS_mr_reg		0
#define FLAGS_cq_create		IBCHAN_CQ_CREATE_SOLICITED
#define FLAGS_channel_build	0
#define FLAGS_channel_handshake	0
#define FLAGS_channel_query	0
#define FLAGS_channel_break	0
#define FLAGS_submit		IBCHAN_SUBMIT_FLAGS
#define FLAGS_destroy		0
#define FLAGS_mr_reg_dmabuf	0
#define FLAGS_channel_connect	IBCHAN_CONNECT_FLAGS
#define FLAGS_channel_connection IBCHAN_DEADLINE
#define FLAGS_listener_create	0
#define FLAGS_request_take	0
#define FLAGS_request_accept	IBCHAN_CONNECT_FLAGS
#define FLAGS_request_reject	0
#define FLAGS_event_take	0
#define FLAGS_route_query	0
#define FLAGS_gid_query		0
#define FLAGS_channel_history	0

/* What is different about a command. */
#define RIGHTS_query		ANY_MM
#define RIGHTS_device_query	ANY_MM
#define RIGHTS_port_query	ANY_MM
#define RIGHTS_device_open	0
#define RIGHTS_pd_alloc		0
#define RIGHTS_mr_reg		0
#define RIGHTS_cq_create	0
#define RIGHTS_channel_build	0
#define RIGHTS_channel_handshake 0
#define RIGHTS_channel_query	ANY_MM
#define RIGHTS_channel_break	0
#define RIGHTS_submit		CHECKS
#define RIGHTS_destroy		ANY_MM
#define RIGHTS_mr_reg_dmabuf	0
#define RIGHTS_channel_connect	0
#define RIGHTS_channel_connection ANY_MM
#define RIGHTS_listener_create	0
#define RIGHTS_request_take	0
#define RIGHTS_request_accept	0
#define RIGHTS_request_reject	0
#define RIGHTS_event_take	0
#define RIGHTS_route_query	ANY_MM
#define RIGHTS_gid_query	ANY_MM
#define RIGHTS_channel_history	ANY_MM

/* A command that has grown serves callers who know its first version only. */
#define FIRST_SIZE(name, last) offsetofend(struct ibchan_cmd_##name, last)
#define FIRST_query		FIRST_SIZE(query, out_pinned_bytes)
#define FIRST_device_query	FIRST_SIZE(device_query, out_max_mr_size)
#define FIRST_port_query	FIRST_SIZE(port_query, out_gid)
#define FIRST_device_open	sizeof(struct ibchan_cmd_device_open)
#define FIRST_pd_alloc		sizeof(struct ibchan_cmd_pd_alloc)
#define FIRST_mr_reg		sizeof(struct ibchan_cmd_mr_reg)
#define FIRST_cq_create		sizeof(struct ibchan_cmd_cq_create)
#define FIRST_channel_build	FIRST_SIZE(channel_build, reason)
#define FIRST_channel_handshake	sizeof(struct ibchan_cmd_channel_handshake)
#define FIRST_channel_query	FIRST_SIZE(channel_query, out_endpoint)
#define FIRST_channel_break	sizeof(struct ibchan_cmd_channel_break)
#define FIRST_submit		sizeof(struct ibchan_cmd_submit)
#define FIRST_destroy		sizeof(struct ibchan_cmd_destroy)
#define FIRST_mr_reg_dmabuf	sizeof(struct ibchan_cmd_mr_reg_dmabuf)
#define FIRST_channel_connect	FIRST_SIZE(channel_connect, reason)
#define FIRST_channel_connection sizeof(struct ibchan_cmd_channel_connection)
#define FIRST_listener_create	sizeof(struct ibchan_cmd_listener_create)
#define FIRST_request_take	sizeof(struct ibchan_cmd_request_take)
#define FIRST_request_accept	sizeof(struct ibchan_cmd_request_accept)
#define FIRST_request_reject	sizeof(struct ibchan_cmd_request_reject)
#define FIRST_event_take	sizeof(struct ibchan_cmd_event_take)
#define FIRST_route_query	FIRST_SIZE(route_query, reserved)
#define FIRST_gid_query		sizeof(struct ibchan_cmd_gid_query)
#define FIRST_channel_history	sizeof(struct ibchan_cmd_channel_history)

enum rights {
	ANY_MM = BIT(0),	/* any process that has the file may */
	CHECKS = BIT(1),	/* checks the caller itself */
};

/**
 * struct command - how a command is run
 * @number: of the ioctl
 * @size: of the struct
 * @first_size: of its first version
 * @flags: known
 * @rights: enum rights
 * @run: the body
 */
struct command {
	unsigned int number;
	u32 size;
	u32 first_size;
	u32 flags;
	u32 rights;
	int (*run)(struct ibchan_call *call);
};

#define COMMAND_ROW(nr, NAME, name)				\
	[nr] = {						\
		.number = IBCHAN_CMD_##NAME,			\
		.size = sizeof(struct ibchan_cmd_##name),	\
		.first_size = FIRST_##name,			\
		.flags = FLAGS_##name,				\
		.rights = RIGHTS_##name,			\
		.run = ibchan_run_##name,			\
	},
static const struct command commands[] = {
	IBCHAN_COMMANDS(COMMAND_ROW)
};

/* Word by word: so few bytes are not worth a string instruction. @words is a constant. */
static __always_inline int copy_words_in(u64 *to, const u64 __user *from, const u32 words)
{
	u32 i;

	if (!user_read_access_begin(from, words * sizeof(u64)))
		return -EFAULT;
#pragma GCC unroll 16
	for (i = 0; i < words; i++)
		unsafe_get_user(to[i], &from[i], fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

static __always_inline int copy_words_out(u64 __user *to, const u64 *from, const u32 words)
{
	u32 i;

	if (!user_write_access_begin(to, words * sizeof(u64)))
		return -EFAULT;
#pragma GCC unroll 16
	for (i = 0; i < words; i++)
		unsafe_put_user(from[i], &to[i], fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

#define SUBMIT_WORDS	(sizeof(struct ibchan_cmd_submit) / sizeof(u64))

/* A submit has no reason when it succeeds. */
#define SUCCESS_WORDS	(offsetof(struct ibchan_cmd_submit, reason) / sizeof(u64))

static bool is_submit(const struct command *command)
{
	return command == &commands[_IOC_NR(IBCHAN_CMD_SUBMIT)];
}

/* A caller may have said any size that is not too small. */
static int copy_out(const struct command *command, const struct ibchan_call *call, int error)
{
	const struct any_header *header = call->cmd;

	if (likely(is_submit(command) && !error))
		return copy_words_out(call->user, call->cmd, SUCCESS_WORDS);
	return copy_to_user(call->user, call->cmd, min(header->size, command->size)) ? -EFAULT : 0;
}

static int copy_in(const struct command *command, union any_command *cmd,
		   void __user *user)
{
	u32 size;
	int ret;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < command->first_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	if (likely(is_submit(command) && size == sizeof(struct ibchan_cmd_submit)))
		ret = copy_words_in((u64 *)cmd, user, SUBMIT_WORDS);
	else
		ret = copy_struct_from_user(cmd, command->size, user, size);
	if (ret)
		return ret;
	cmd->header.size = size;
	cmd->header.flags &= ~IBCHAN_ANSWERED;
	return cmd->header.flags & ~command->flags ? -EOPNOTSUPP : 0;
}

static void undo(struct ibchan_call *call)
{
	struct ibchan_object *object;

	if (call->new)
		ibchan_object_abort(call->ctx, call->new);
	if (call->new_file)
		fput(call->new_file);
	if (call->new_fd >= 0)
		put_unused_fd(call->new_fd);
	if (!call->told)
		return;
	rcu_read_lock();
	object = ibchan_object_find(call->ctx, call->told, OBJECT_CHANNEL);
	/* It may have been closed meanwhile. */
	if (object)
		ibchan_object_event(object, call->events);
	rcu_read_unlock();
}

/* Half an answer is none: the flags may have gone out before the page that could not be written. */
static void retract(struct any_header __user *user, u32 flags)
{
	if (put_user(flags & ~IBCHAN_ANSWERED, &user->flags))
		return;
}

/*
 * The answer goes out after a refusal too, because it says why. The caller gets as many bytes
 * as it has said its struct has; the rest of a longer struct stays as it is.
 */
static int answer(const struct command *command, struct ibchan_call *call, int ret)
{
	struct any_header *header = call->cmd;
	/* The end of a wait that is run again stands in the answer. */
	bool must_tell = !ret || ret == -ERESTARTNOHAND;

	header->flags |= IBCHAN_ANSWERED;
	if (copy_out(command, call, ret)) {
		retract(call->user, header->flags);
		if (must_tell)
			ret = -EFAULT;
	}
	if (ret) {
		undo(call);
		return ret;
	}
	/* Nothing fails from here on. */
	if (call->new)
		ibchan_object_publish(call->ctx, call->new);
	if (call->new_file)
		fd_install(call->new_fd, call->new_file);
	return 0;
}

/* The answer is written without any object held: that may take as long as its owner likes. */
static int dispatch(const struct command *command, struct ibchan_call *call)
{
	int ret = 0;

	if (!(command->rights & (ANY_MM | CHECKS)))
		ret = ibchan_caller_check(call->ctx);
	if (!ret)
		ret = command->run(call);
	ibchan_call_release(call);
	return answer(command, call, ret);
}

static const struct command *find_command(unsigned int number)
{
	u32 nr = _IOC_NR(number);

	if (nr >= ARRAY_SIZE(commands))
		return NULL;
	/* A processor that guesses must not call beyond the table. */
	nr = array_index_nospec(nr, ARRAY_SIZE(commands));
	return commands[nr].number == number ? &commands[nr] : NULL;
}

/* Returns what <linux/ibchan.h> says. */
static long ibchan_ioctl(struct file *file, unsigned int number, unsigned long arg)
{
	const struct command *command = find_command(number);
	/* Copied in over the whole size of the command. */
	union any_command cmd __uninitialized;
	struct ibchan_call call = {
		.ctx = file->private_data,
		.file = file,
		.cmd = &cmd,
		.user = (void __user *)arg,
		.new_fd = -1,
	};
	int ret;

	if (!command)
		return -ENOTTY;
	ret = copy_in(command, &cmd, call.user);
	return ret ?: dispatch(command, &call);
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
