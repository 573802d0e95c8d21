// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine.h"
#include "world.h"

/* Steps that one scene is good for. */
#define SCENE_STEPS	1000
/* One scene in so many has a ring that is damaged sooner or later. */
#define WILD		8

#define PAGE		4096

/* No address of which one bit or one byte is changed is on the other side. */
#define GAP		(sizeof(void *) == 8 ? 0x7060000000ULL : 3ULL << 24)

struct engine {
	struct shared *shared;
	struct scene scene;
	struct dice dice;
	pthread_barrier_t meeting;
	pthread_mutex_t learning;	/* who adds to the corpus */
	const char *gap;	/* all mappings of scenes are below it */
	unsigned int steps;	/* taken on this scene */
	unsigned int done;	/* threads that take no more of them */
	bool is_open;
	bool over;
	struct racer {
		struct engine *engine;
		struct trail *trail;
		struct runner runner;
		struct dice dice;
		pthread_t thread;
		bool leader;	/* opens and closes the scenes */
	} racers[MAX_THREADS];
};

struct shared *shared_create(void)
{
	void *map = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* Only the first one counts. */
static void fail(struct shared *shared, const struct program *program, const char *format, ...)
{
	va_list args;

	if (__atomic_exchange_n(&shared->failed, true, __ATOMIC_ACQ_REL))
		return;
	va_start(args, format);
	vsnprintf(shared->failure, sizeof(shared->failure), format, args);
	va_end(args);
	if (program)
		shared->culprit = *program;
}

static bool is_over(const struct shared *shared)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&shared->failed, __ATOMIC_ACQUIRE) ||
	       (shared->replay &&
		__atomic_load_n(&shared->num_replayed, __ATOMIC_RELAXED) >= shared->num_loaded);
}

static bool is_used_up(struct engine *engine)
{
	return __atomic_load_n(&engine->steps, __ATOMIC_RELAXED) >= SCENE_STEPS ||
	       is_over(engine->shared);
}

/* ---- One program ---- */

static void remember(struct engine *engine, const struct program *program, unsigned int steps)
{
	struct shared *shared = engine->shared;
	unsigned int place;

	pthread_mutex_lock(&engine->learning);
	place = shared->num_known;
	if (place < MAX_PROGRAMS) {
		shared->programs[place] = *program;
		shared->programs[place].num_steps = steps;
		shared->leads[place] = true;
		__atomic_store_n(&shared->num_known, place + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&engine->learning);
}

/* What was loaded comes first, each once; the number of the program then, else -1. */
static int next_program(struct racer *racer, struct program *program)
{
	struct shared *shared = racer->engine->shared;
	const struct library known = {
		.programs = shared->programs,
		.num = __atomic_load_n(&shared->num_known, __ATOMIC_ACQUIRE),
	};
	unsigned int place;

	if (__atomic_load_n(&shared->num_replayed, __ATOMIC_RELAXED) < shared->num_loaded) {
		place = __atomic_fetch_add(&shared->num_replayed, 1, __ATOMIC_RELAXED);
		if (place < shared->num_loaded) {
			*program = shared->programs[place];
			return place;
		}
	}
	program_invent(program, &racer->dice, &known);
	return -1;
}

static void trace(const struct racer *racer, const struct program *program, unsigned int n)
{
	char line[1024];
	struct program one = { .num_steps = 1, .steps = { program->steps[n] } };
	struct text text = { line, sizeof(line) };

	program_print(&one, &text);
	fprintf(stderr, "# %td/%u: %s\n", racer - racer->engine->racers, n, line);
}

/* In a tame scene nobody has damaged a ring. */
static void judge(struct racer *racer, const struct program *program, unsigned int n, int rc)
{
	struct engine *engine = racer->engine;
	const struct step *step = &program->steps[n];
	int signal = __atomic_load_n(&engine->scene.killed_by, __ATOMIC_RELAXED);

	if (signal)
		fail(engine->shared, program, "signal %d has killed a child: %s", signal,
		     "something has written to memory that nobody gave it");
	if (step->action == NUM_EXAMPLES)
		return;
	if (!is_documented(rc))
		fail(engine->shared, program, "step %u, %s, gives %d, which is not documented", n,
		     action_name(step->action), rc);
	if (rc != -EPROTO)
		return;
	if (!engine->scene.wild)
		fail(engine->shared, program, "step %u, %s: nobody has damaged a ring", n,
		     action_name(step->action));
	/* There is not much to be had any more. */
	__atomic_fetch_add(&engine->steps, SCENE_STEPS / 8, __ATOMIC_RELAXED);
}

static void run_one(struct racer *racer)
{
	struct shared *shared = racer->engine->shared;
	struct program *program = &racer->trail->programs[racer->trail->num % TRAIL];
	int place = next_program(racer, program);
	unsigned int n, reached = 0;

	__atomic_store_n(&racer->trail->num, racer->trail->num + 1, __ATOMIC_RELAXED);
	for (n = 0; n < program->num_steps; n++) {
		struct outcome outcome;

		racer->trail->step = n;
		if (shared->trace)
			trace(racer, program, n);
		outcome = runner_step(&racer->runner, program, n);
		__atomic_fetch_add(&shared->executions, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&racer->engine->steps, 1, __ATOMIC_RELAXED);
		judge(racer, program, n, outcome.rc);
		if (outcome.fresh)
			reached = n + 1;
	}
	if (reached && place < 0)
		remember(racer->engine, program, reached);
	else if (reached)
		shared->leads[place] = true;
}

/* ---- Scenes ---- */

static void change_scene(struct engine *engine)
{
	struct shared *shared = engine->shared;
	int rc;

	if (engine->is_open)
		scene_close(&engine->scene);
	engine->over = is_over(shared);
	engine->is_open = !engine->over;
	engine->steps = 0;
	engine->done = 0;
	if (engine->over)
		return;
	rc = scene_open(&engine->scene, roll(&engine->dice) % WILD == 0);
	if (rc)
		fail(shared, NULL, "a scene cannot be opened: %d", rc);
	else if (!scene_is_below(&engine->scene, engine->gap))
		fail(shared, NULL, "memory of a scene lies beside the fuzzer's own");
	__atomic_fetch_add(&shared->scenes, 1, __ATOMIC_RELAXED);
}

/* All threads meet where the scene changes; false when there is none any more. */
static bool next_scene(struct engine *engine, bool leader)
{
	pthread_barrier_wait(&engine->meeting);
	if (leader)
		change_scene(engine);
	pthread_barrier_wait(&engine->meeting);
	return !engine->over;
}

static void *racer_body(void *arg)
{
	struct racer *racer = arg;
	struct engine *engine = racer->engine;

	racer->runner.kcov = kcov_open();
	if (racer->leader)
		engine->shared->has_kcov = racer->runner.kcov;
	pthread_barrier_wait(&engine->meeting);
	while (next_scene(engine, racer->leader)) {
		while (!is_used_up(engine))
			run_one(racer);
		__atomic_fetch_add(&engine->done, 1, __ATOMIC_RELEASE);
	}
	kcov_close(racer->runner.kcov);
	return NULL;
}

/* Meanwhile: words of the ring change, completions are read, waits are interrupted. */
static void scribble(struct engine *engine)
{
	struct dice *dice = &engine->dice;
	unsigned int i;

	for (i = 0; i < 8; i++)
		deed_store(&engine->scene, roll(dice), interesting(dice));
	deed_reap(&engine->scene);
	if (roll(dice) % 8 == 0)
		pthread_kill(engine->racers[roll(dice) % engine->shared->threads].thread, SIGUSR1);
	poll(NULL, 0, 1);
}

static void ignore(int signal)
{
	(void)signal;
}

static void start_racer(struct engine *engine, unsigned int i)
{
	struct racer *racer = &engine->racers[i];

	racer->engine = engine;
	racer->trail = &engine->shared->trails[i];
	racer->runner.scene = &engine->scene;
	racer->runner.cover = &engine->shared->cover;
	racer->dice.state = engine->shared->seed + 0x9e3779b97f4a7c15ULL * (i + 1);
	racer->leader = !i;
	pthread_create(&racer->thread, NULL, racer_body, racer);
}

/*
 * What a program registers may go on behind the mapping in which it begins, and the device
 * then writes to whatever is there. So nothing of the fuzzer's is: mappings are made
 * downwards, and those of the scenes come below a gap. It is one of an empty file: private
 * memory that nobody may touch has its pages all the same where 6.1 registers for reading.
 */
static int leave_gap(struct engine *engine)
{
	int fd = memfd_create("gap", MFD_CLOEXEC);
	char *gap = mmap(NULL, GAP, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	char *hole = gap;

	engine->gap = gap;
	/* Holes above it would be taken first, however small they are. */
	while (hole != MAP_FAILED && hole >= gap)
		hole = mmap(NULL, PAGE, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (gap == MAP_FAILED || hole == MAP_FAILED)
		return -ENOMEM;
	return munmap(hole, PAGE) ? -errno : 0;
}

void engine_run(struct shared *shared)
{
	const struct sigaction action = { .sa_handler = ignore };
	static struct engine engine;
	unsigned int i;

	engine.shared = shared;
	engine.dice.state = shared->seed;
	sigaction(SIGUSR1, &action, NULL);
	/* The heaps of threads would lie on the wrong side of the gap. */
	mallopt(M_ARENA_MAX, 1);
	if (arena_create(&engine.scene)) {
		fail(shared, NULL, "there is no place for the arena");
		return;
	}
	for (i = 0; i < shared->threads; i++) {
		if (runner_open(&engine.racers[i].runner, i)) {
			fail(shared, NULL, "there is no place for a room");
			return;
		}
	}
	pthread_mutex_init(&engine.learning, NULL);
	pthread_barrier_init(&engine.meeting, NULL, shared->threads + 1);
	for (i = 0; i < shared->threads; i++)
		start_racer(&engine, i);
	/* All that is theirs is there, and no scene yet. */
	pthread_barrier_wait(&engine.meeting);
	if (leave_gap(&engine))
		fail(shared, NULL, "there is no place for the gap");
	/* Also the last wait of a scene may be one that only a signal ends. */
	while (next_scene(&engine, false)) {
		while (__atomic_load_n(&engine.done, __ATOMIC_ACQUIRE) < shared->threads)
			scribble(&engine);
	}
	for (i = 0; i < shared->threads; i++)
		pthread_join(engine.racers[i].thread, NULL);
}
