/* store.c: see store.h. Tensors: store_tensor.c; /run, /model and /plan: store_about.c. */
#include "capture/store/store_internal.h"

#include "libref/base/map.h"
#include "libref/base/signals.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const size_t QUEUE_BUDGET = (size_t)256 << 20;
enum { GUESSED_LAYERS = 64 }; /* used without a plan; groups with more links get further blocks */

static vn_status make_file(vn_store *s, bool whole, vn_error *err)
{
	vn_message m = { 0 };

	vn_message_put_int(&m, (s->plan ? s->plan->layers : GUESSED_LAYERS) + VN_N_POINTS);
	vn_message_put_int(&m, whole);
	return vn_store_do(s, VN_SCRIBE_CREATE, &m, NULL, err);
}

/* Starts the storing thread, which forks the scribe. */
static vn_status start_thread(vn_store *s, vn_error *err)
{
	sigset_t all, old;

	if (!(s->queue = vn_queue_create(QUEUE_BUDGET)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", s->place.path);
	/* Blocks all signals in the new thread, so that the main thread handles them. */
	vn_signals_of_others(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	s->started = pthread_create(&s->thread, NULL, vn_store_thread, s) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!s->started)
		return vn_fail(err, VN_ERR_NOMEM, "%s: cannot start a thread", s->place.path);
	while (sem_wait(&s->begun) != 0 && errno == EINTR)
		;
	return vn_store_status(s, err);
}

static vn_status create_store(const char *path, bool force, bool whole, const vn_plan *plan, vn_store **store,
                              vn_error *err)
{
	vn_store *s = *store = calloc(1, sizeof *s);
	vn_status st;

	if (!s)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	*s = (vn_store) {
		.plan = plan, .whole = whole, .place.fd = -1, .disk.direct = -1, .scribe = { .pid = -1, .socket = -1 }
	};
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->asking, NULL);
	sem_init(&s->begun, 0, 0);
	/* Makes a file-size limit an error of the write instead of ending the process. */
	signal(SIGXFSZ, SIG_IGN);
	if (!(st = vn_place_open(&s->place, path, force, err))) {
		vn_disk_open(&s->disk, s->place.fd, s->place.partial);
		st = start_thread(s, err);
	}
	st = st ? st : make_file(s, whole, err);
	if (st)
		vn_store_abandon(store);
	return st;
}

vn_status vn_store_create(const char *path, bool force, const vn_plan *plan, vn_store **store, vn_error *err)
{
	return create_store(path, force, false, plan, store, err);
}

vn_status vn_store_create_whole(const char *path, bool force, vn_store **store, vn_error *err)
{
	return create_store(path, force, true, NULL, store, err);
}

/* ---- steps ------------------------------------------------------------------------ */

vn_status vn_store_step(vn_store *s, const vn_step *step, vn_error *err)
{
	vn_message m = { 0 };

	vn_queue_drain(s->queue);
	vn_message_put_int(&m, step->number);
	vn_message_put_int(&m, step->position);
	vn_message_put_int(&m, step->tokens);
	vn_message_put_int(&m, step->first_row);
	vn_message_put_int(&m, step->rows);
	return vn_store_do(s, VN_SCRIBE_STEP, &m, NULL, err);
}

vn_status vn_store_aliases(vn_store *s, const bool *want, vn_error *err)
{
	vn_message m = { 0 };
	int64_t    n = 0;

	vn_queue_drain(s->queue);
	for (int v = 0; v < s->plan->n_values; v++)
		n += want[v] && s->plan->value[v].alias_of >= 0;
	vn_message_put_int(&m, n);
	for (int v = 0; v < s->plan->n_values; v++)
		if (want[v] && s->plan->value[v].alias_of >= 0) {
			vn_message_put_text(&m, s->plan->value[v].name);
			vn_message_put_text(&m, s->plan->value[vn_plan_root(s->plan, v)].name);
		}
	return vn_store_do(s, VN_SCRIBE_ALIASES, &m, NULL, err);
}

/* ---- the end ----------------------------------------------------------------------- */

/* Waits until everything posted is stored and the last answer has arrived. The thread keeps
 * running, because the scribe ends with it. */
static void come_to_rest(vn_store *s)
{
	if (s->started)
		vn_queue_drain(s->queue);
	vn_store_collect(s, NULL);
	vn_block_free(s->filling);
	s->filling = NULL;
}

static void stop_thread(vn_store *s)
{
	if (s->started) {
		vn_queue_close(s->queue);
		pthread_join(s->thread, NULL);
	}
	s->started = false;
}

/* Writes everything to disk and ends the scribe, also after a failure. Without complete the mark
 * stays 0. left: the tensors that the file has; -1 if the scribe crashed before. */
static vn_status close_file(vn_store *s, bool complete, int64_t *left, vn_error *err)
{
	vn_message m = { 0 };
	vn_status  st = VN_OK;

	*left = -1;
	vn_message_put_int(&m, complete);
	if (s->scribe.socket >= 0)
		st = vn_scribe_do(&s->scribe, VN_SCRIBE_CLOSE, &m, left, err);
	vn_message_finish(&m);
	vn_scribe_end(&s->scribe);
	stop_thread(s);
	return st;
}

static void release_store(vn_store **store)
{
	vn_store *s = *store;
	vn_queue_destroy(s->queue);
	vn_disk_close(&s->disk);
	free(s->ids);
	vn_place_close(&s->place);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->asking);
	sem_destroy(&s->begun);
	free(s);
	*store = NULL;
}

/* Half of a file that is rewritten as a whole can be made again, and HDF5 may have failed in
 * the middle of it. */
static bool remove_useless(const vn_store *s, int64_t left)
{
	const bool useless = s->whole || s->tensors == 0 || left == 0;

	if (useless && s->place.partial)
		unlink(s->place.partial); /* still locked, so it is ours */
	return useless;
}

vn_status vn_store_commit(vn_store **store, vn_error *err)
{
	vn_store *s = *store;
	vn_status st = s->open ? vn_fail(err, VN_ERR_SHAPE, "%s: a tensor is not ended", s->place.partial) : VN_OK;

	come_to_rest(s);
	st = st ? st : vn_store_status(s, err);
	const bool whole = !st && !(st = vn_trouble_since(s->place.mark, s->place.partial, err)) &&
	                   !(st = vn_maps_unchanged(err));
	int64_t   left;
	vn_status closed = close_file(s, whole && !s->cut, &left, whole ? err : NULL);
	st = st ? st : closed;
	if (!st)
		st = vn_place_settle(&s->place, err);
	else
		remove_useless(s, left);
	release_store(store);
	return st;
}

void vn_store_cut(vn_store *s)
{
	s->cut = true;
}

int64_t vn_store_tensors(vn_store *s, int64_t *bytes)
{
	vn_queue_drain(s->queue);
	pthread_mutex_lock(&s->asking);
	vn_store_collect(s, NULL);
	pthread_mutex_unlock(&s->asking);
	if (bytes)
		*bytes = s->bytes;
	return s->tensors;
}

int64_t vn_store_abandon(vn_store **store)
{
	vn_store *s = *store;
	int64_t   left;

	if (!s)
		return 0;
	come_to_rest(s);
	close_file(s, false, &left, NULL);
	if (remove_useless(s, left))
		left = 0;
	release_store(store);
	return left;
}

void vn_store_forget(vn_store **store)
{
	vn_store *s = *store;

	*store = NULL;
	if (!s)
		return;
	vn_disk_close(&s->disk);
	if (s->scribe.socket >= 0)
		close(s->scribe.socket);
	if (s->place.fd >= 0)
		close(s->place.fd); /* its lock stays the parent's */
}
