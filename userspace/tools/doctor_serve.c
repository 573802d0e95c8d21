// SPDX-License-Identifier: LGPL-2.1-or-later
/* ibchan doctor --serve: the peer of any number of doctors. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* One that asks. */
struct patient {
	struct link link;		/* with it */
	struct ibchan_request *request;	/* taken */
	char device[IBCHAN_NAME_SIZE];	/* that it came over */
	char name[INET6_ADDRSTRLEN];	/* the client's address, in words */
};

/* A doctor that is gone without a word holds nothing for longer than this. */
#define PATIENCE_NS	(60 * NSEC_PER_SEC)

/* Served at a time. Others wait as requests that nobody has taken yet. */
#define MOST	32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_has_left = PTHREAD_COND_INITIALIZER;
static unsigned int present;	/* under @lock */
static unsigned int departed;	/* under @lock */

static void change_present(int change)
{
	pthread_mutex_lock(&lock);
	present += change;
	departed += change < 0;
	pthread_cond_signal(&one_has_left);
	pthread_mutex_unlock(&lock);
}

/*
 * Waits until fewer than @most are present, or more have left than @left. Returns how many have
 * left by then.
 */
static unsigned int await_departure(unsigned int most, unsigned int left)
{
	pthread_mutex_lock(&lock);
	while (present >= most && departed == left)
		pthread_cond_wait(&one_has_left, &lock);
	left = departed;
	pthread_mutex_unlock(&lock);
	return left;
}

static int accept_request(struct patient *patient, struct ibchan_error *error)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .data = greeting, .length = sizeof(greeting),
	};
	struct link *link = &patient->link;
	int err = link_open(link, link->context, patient->device, error);

	if (!err)
		err = ibchan_request_accept(patient->request, link->prepared, &params,
					    &link->channel, error);
	if (err) {
		ibchan_request_reject(patient->request, NULL, 0, NULL);
		return err;
	}
	link->prepared = NULL;
	return 0;
}

/* Until it closes the channel, which is the usual end. */
static void answer_all(struct link *link, struct ibchan_error *error)
{
	__u32 bytes;
	bool right;

	while (!link_hear(link, &bytes, error)) {
		right = link_is_right(link, bytes);
		if (link_listen(link, error) || link_say(link, right ? bytes : 0, error))
			return;
		link->round++;
	}
}

static void *serve_one(void *data)
{
	struct patient *patient = data;
	struct link *link = &patient->link;
	struct ibchan_error error = { 0 };
	int err = accept_request(patient, &error);

	if (!err)
		err = ibchan_channel_connect_wait(link->channel, link->timeout_ns, &error);
	if (err) {
		complain_error(patient->name, &error);
	} else {
		printf("%s: connected over %s\n", patient->name, patient->device);
		fflush(stdout);
		answer_all(link, &error);
		printf("%s: %u messages answered\n", patient->name, link->round);
		fflush(stdout);
	}
	link_close(link);
	free(patient);
	change_present(-1);
	return NULL;
}

/* Takes the request whatever becomes of it. */
static void take_in(struct ibchan_context *context, struct ibchan_request *request)
{
	struct patient *patient = calloc(1, sizeof(*patient));
	struct ibchan_request_info info;
	pthread_t thread;

	ibchan_request_query(request, &info);
	if (patient && greeting_is_ours(info.data, info.length)) {
		patient->link.serves = true;
		patient->link.timeout_ns = PATIENCE_NS;
		patient->link.context = context;
		patient->request = request;
		snprintf(patient->device, sizeof(patient->device), "%s", info.device);
		address_text((struct sockaddr *)&info.peer, patient->name, sizeof(patient->name));
		change_present(1);
		if (!pthread_create(&thread, NULL, serve_one, patient)) {
			pthread_detach(thread);
			return;
		}
		change_present(-1);
	}
	ibchan_request_reject(request, NULL, 0, NULL);
	free(patient);
}

int doctor_serve(const char *port)
{
	struct ibchan_listen_params params = { .size = sizeof(params), .service = port };
	struct ibchan_listener *listener;
	struct ibchan_request *request;
	struct ibchan_context *context;
	struct ibchan_error error;
	unsigned int left = 0;
	int err;

	if (open_context(&context))
		return -1;
	if (ibchan_listener_create(context, &params, &listener, &error)) {
		ibchan_context_close(context);
		return complain_error("listen", &error);
	}
	printf("answering doctors on port %s\n", port);
	fflush(stdout);
	do {
		left = await_departure(MOST, left);
		err = ibchan_request_take(listener, IBCHAN_TIMEOUT_NEVER, &request, NULL);
		if (!err)
			take_in(context, request);
		/* One that has left meanwhile has given back objects that were too many. */
	} while (!err || err == -EINTR || (err == -EMFILE && await_departure(1, left) != left));
	/* Threads may be using the context: the end of the process closes it. */
	return complain("listen: %s", strerror(-err));
}
