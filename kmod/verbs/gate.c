// SPDX-License-Identifier: GPL-2.0-only
/*
 * The gate of a device: its users pass it, its removal closes it.
 *
 * Three kinds of users call the driver:
 *
 * - Commands. The gate lets them in, or says at once that the device leaves. They never wait.
 * - Ends of objects. These cannot fail: while removal is alone with the device, they wait.
 *   Removal is alone for as long as the driver's own calls and a drain take.
 * - Guests: registrations of user memory by the driver, which faults pages in. That takes as
 *   long as the server of these pages (FUSE, userfaultfd) likes. So may taking such a
 *   registration back, see mr_end.c. Only removal waits for guests. Meanwhile the gate is
 *   open for ends, and the kernel log names the guest.
 *
 * Commands and ends therefore fault in no user memory, and wait for nothing that a user
 * controls. An rwsem would not do: its waiting writer stops every reader behind it.
 */
#include <linux/errno.h>

#include "private.h"

/* Of the state. The lower bits count. */
enum {
	LEAVING = BIT(30),	/* commands and guests get -ENODEV; never taken back */
	CLOSED = BIT(29),	/* removal is alone with the device: ends wait */
	FLAGS = LEAVING | CLOSED,
};

void ibchan_gate_init(struct ibchan_gate *gate)
{
	static struct lock_class_key key;

	spin_lock_init(&gate->lock);
	INIT_LIST_HEAD(&gate->guests);
	init_waitqueue_head(&gate->wait);
	lockdep_init_map(&gate->map, "ibchan_gate", &key, 0);
}

static bool is_leaving(const struct ibchan_gate *gate)
{
	return atomic_read(&gate->state) & LEAVING;
}

/* Counts the caller, unless @flag is set. */
static bool enter_unless(struct ibchan_gate *gate, int flag)
{
	int state = atomic_read(&gate->state);

	do {
		if (state & flag)
			return false;
	} while (!atomic_try_cmpxchg(&gate->state, &state, state + 1));
	return true;
}

/*
 * Begins a command, in process context, where it may sleep, and without waiting: 0, or -ENODEV when
 * the device leaves or has left.
 */
int ibchan_device_enter(struct ibchan_device *dev)
{
	/* The caller may sleep inside the gate. */
	might_sleep();
	if (!enter_unless(&dev->gate, LEAVING))
		return -ENODEV;
	rwsem_acquire_read(&dev->gate.map, 0, 1, _RET_IP_);
	return 0;
}

/* Begins to end an object, also of a device that has left; waits while removal is alone with it. */
void ibchan_device_enter_to_end(struct ibchan_device *dev)
{
	struct ibchan_gate *gate = &dev->gate;

	might_sleep();
	rwsem_acquire_read(&gate->map, 0, 0, _RET_IP_);
	if (!enter_unless(gate, CLOSED))
		wait_event(gate->wait, enter_unless(gate, CLOSED));
}

/* The end of what ibchan_device_enter() or ibchan_device_enter_to_end() has begun. */
void ibchan_device_exit(struct ibchan_device *dev)
{
	rwsem_release(&dev->gate.map, _RET_IP_);
	/* The last one, while the device leaves. */
	if (atomic_dec_return(&dev->gate.state) == LEAVING)
		wake_up_all(&dev->gate.wait);
}

/*
 * Begins a call of the driver that user memory may hold up; -ENODEV when the device leaves. The
 * guest holds no gate: domains stay, and with them the device, but all else goes when the device
 * leaves.
 */
int ibchan_gate_admit(struct ibchan_device *dev, struct ibchan_guest *guest)
{
	guest->ends = 0;
	guest->pid = current->tgid;
	get_task_comm(guest->comm, current);
	guard(spinlock)(&dev->gate.lock);
	if (is_leaving(&dev->gate))
		return -ENODEV;
	list_add_tail(&guest->link, &dev->gate.guests);
	return 0;
}

/* @to takes the place of @from, and takes back what that has registered, for the same process. */
void ibchan_gate_hand_over(struct ibchan_device *dev, struct ibchan_guest *from,
			   struct ibchan_guest *to)
{
	*to = *from;
	to->ends = 1;
	guard(spinlock)(&dev->gate.lock);
	list_replace(&from->link, &to->link);
}

/* The end of a guest's call. */
void ibchan_gate_dismiss(struct ibchan_device *dev, struct ibchan_guest *guest)
{
	guard(spinlock)(&dev->gate.lock);
	list_del(&guest->link);
	if (list_empty(&dev->gate.guests) && is_leaving(&dev->gate))
		wake_up_all(&dev->gate.wait);
}

/*
 * From now on no command and no guest begins; waits until commands and ends under way are through.
 * Guests may stay. Removal only.
 */
void ibchan_gate_close(struct ibchan_gate *gate)
{
	/* Under the lock a guest looks for the flag and enters the list. */
	scoped_guard(spinlock, &gate->lock)
		atomic_or(LEAVING, &gate->state);
	rwsem_acquire(&gate->map, 0, 0, _RET_IP_);
	wait_event(gate->wait, atomic_cmpxchg(&gate->state, LEAVING, FLAGS) == LEAVING);
}

/* Ends that wait go on. Removal only. */
void ibchan_gate_open(struct ibchan_gate *gate)
{
	rwsem_release(&gate->map, _RET_IP_);
	/* Ends that enter see removal's changes. Pairs with enter_unless(). */
	smp_mb__before_atomic();
	atomic_andnot(CLOSED, &gate->state);
	wake_up_all(&gate->wait);
}

/*
 * While the device leaves, and the gate is open. -EAGAIN after @timeout jiffies, with a copy of the
 * guest that came first. Under the lock the caller sees all that guests did which have gone.
 */
int ibchan_gate_wait_guests(struct ibchan_gate *gate, unsigned long timeout,
			    struct ibchan_guest *first)
{
	struct ibchan_guest *guest;

	wait_event_timeout(gate->wait, list_empty(&gate->guests), timeout);
	guard(spinlock)(&gate->lock);
	guest = list_first_entry_or_null(&gate->guests, struct ibchan_guest, link);
	if (!guest)
		return 0;
	*first = *guest;
	return -EAGAIN;
}
