/* store.c: see store.h. The tensors themselves: store_tensor.c; /run, /model and
 * /plan: store_about.c. */
#include "capture/store/store_inside.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const size_t QUEUE_BUDGET = (size_t)256 << 20;
enum { GUESSED_LAYERS = 64 }; /* where no plan says: a group with more links has further blocks */

vn_status vn_store_failed(vn_store *s, vn_status st, const vn_error *err)
{
	pthread_mutex_lock(&s->lock);
	if (!s->status) {
		s->status = st;
		s->err = *err;
	}
	pthread_mutex_unlock(&s->lock);
	return st;
}

vn_status vn_store_status(vn_store *s, vn_error *err)
{
	pthread_mutex_lock(&s->lock);
	vn_status st = s->status;
	if (st && err)
		*err = s->err;
	pthread_mutex_unlock(&s->lock);
	return st;
}

vn_status vn_store_enter(vn_store *s, vn_error *err)
{
	vn_error  own;
	vn_status st = vn_store_status(s, err);

	if (st)
		return st;
	vn_h5_lock();
	if ((st = vn_h5_room(s->place.partial, &own))) {
		vn_h5_unlock();
		vn_store_failed(s, st, &own);
		if (err)
			*err = own;
	}
	return st;
}

vn_status vn_store_broken(const vn_store *s, const char *what, vn_error *err)
{
	return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot write %s", s->place.partial, what);
}

vn_status vn_store_settle(vn_store *s, bool good, const char *what, bool at_once, vn_error *err)
{
	vn_error  here;
	vn_status st = !good ? vn_store_broken(s, what, &here)
	             : at_once ? vn_store_publish(s, &here) : vn_store_publish_when_due(s, &here);

	if (st) {
		vn_store_failed(s, st, &here);
		if (err)
			*err = here;
	}
	return st;
}

static bool put_root(hid_t file)
{
	char      now[32];
	time_t    t = time(NULL);
	struct tm tm;

	strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	return vn_h5_put_text(file, "format", "vernier-checkpoint") && vn_h5_put_int(file, "format_version", 1) &&
	       vn_h5_put_int(file, "complete", 0) && vn_h5_put_text(file, "created", now) &&
	       vn_h5_put_text(file, "tool", "vernier") && vn_h5_put_text(file, "tool_version", VERNIER_VERSION);
}

/* Links of a group stay in its header, in one block with room for them from the
 * start: then adding one is a single write (driver.h). Steps are links of the
 * root and may be thousands. A block with room for all would be too large: kill
 * -9 can end a write between two pages. Those beyond the first few go into
 * blocks of their own, which are written before the block that leads to them. */
static bool one_block(hid_t props, unsigned links)
{
	return H5Pset_link_phase_change(props, 65535, 0) >= 0 && H5Pset_est_link_info(props, links, 16) >= 0 &&
	       H5Pset_obj_track_times(props, false) >= 0 && H5Pset_attr_phase_change(props, 64, 0) >= 0;
}

/* Adding a link so takes HDF5 time that grows with the square of their number: 4000 names took 80 s. Where nothing shows
 * before the end (driver.h, hold), links beyond the first few are in an index, which it rewrites in several blocks. */
static bool with_index(hid_t props)
{
	return H5Pset_link_phase_change(props, 32, 0) >= 0 && H5Pset_est_link_info(props, 32, 16) >= 0 &&
	       H5Pset_obj_track_times(props, false) >= 0 && H5Pset_attr_phase_change(props, 64, 0) >= 0;
}

static vn_status make_file(vn_store *s, vn_error *err)
{
	hid_t     fapl = H5Pcreate(H5P_FILE_ACCESS), fcpl = H5Pcreate(H5P_FILE_CREATE);
	hid_t     driver = (hid_t)vn_driver_id();
	unsigned  links = (unsigned)(s->plan ? s->plan->layers : GUESSED_LAYERS) + VN_N_POINTS;
	vn_status st = VN_OK;

	s->groups = H5Pcreate(H5P_GROUP_CREATE);
	/* Format 1.8: the later superblock marks a file that was not closed, and
	 * then nothing opens it without h5clear. */
	if (fapl < 0 || fcpl < 0 || s->groups < 0 || driver < 0 ||
	    H5Pset_driver(fapl, driver, vn_driver_info(s->driver)) < 0 ||
	    H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0 ||
	    !(s->whole ? with_index(fcpl) && with_index(s->groups) : one_block(fcpl, 16) && one_block(s->groups, links < 65535 ? links : 65535)) ||
	    (s->file = H5Fcreate(s->place.partial, H5F_ACC_TRUNC, fcpl, fapl)) < 0 || !put_root(s->file))
		st = vn_store_broken(s, "a new file", err);
	else
		st = vn_store_publish(s, err);
	if (!st && s->whole)
		vn_driver_hold(s->driver);
	if (fcpl >= 0)
		H5Pclose(fcpl);
	if (fapl >= 0)
		H5Pclose(fapl);
	return st;
}

static vn_status create(const char *path, bool force, bool whole, const vn_plan *plan, vn_store **store, vn_error *err)
{
	vn_store *s = *store = calloc(1, sizeof *s);
	vn_status st;
	sigset_t  all, old;

	if (!s)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	*s = (vn_store){ .plan = plan, .whole = whole, .place.fd = -1, .disk.direct = -1, .file = H5I_INVALID_HID, .step = H5I_INVALID_HID,
	                 .groups = H5I_INVALID_HID, .parent = H5I_INVALID_HID, .tensor.dset = H5I_INVALID_HID };
	pthread_mutex_init(&s->lock, NULL);
	/* A file-size limit is an error like a full disk, not the end of us. */
	signal(SIGXFSZ, SIG_IGN);
	vn_h5_lock();
	if (!(st = vn_place_open(&s->place, path, force, err))) {
		vn_disk_open(&s->disk, s->place.fd, s->place.partial);
		if ((s->driver = vn_driver_create(s->place.fd, s->place.partial)))
			st = (st = vn_h5_room(s->place.partial, err)) ? st : make_file(s, err);
		else
			st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	}
	vn_h5_unlock();
	if (!st && !(s->queue = vn_queue_create(QUEUE_BUDGET)))
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	if (!st) {
		/* Signals go to the threads that know what to do with them. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		s->started = pthread_create(&s->thread, NULL, vn_store_thread, s) == 0;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (!s->started)
			st = vn_fail(err, VN_ERR_NOMEM, "%s: cannot start a thread", path);
	}
	if (st)
		vn_store_abandon(store);
	return st;
}

vn_status vn_store_create(const char *path, bool force, const vn_plan *plan, vn_store **store, vn_error *err)
{
	return create(path, force, false, plan, store, err);
}

vn_status vn_store_create_whole(const char *path, bool force, vn_store **store, vn_error *err)
{
	return create(path, force, true, NULL, store, err);
}

/* ---- steps ------------------------------------------------------------------------ */

static void close_step(vn_store *s)
{
	if (s->parent >= 0)
		H5Gclose(s->parent);
	if (s->step >= 0)
		H5Gclose(s->step);
	s->parent = s->step = H5I_INVALID_HID;
}

vn_status vn_store_step(vn_store *s, int step, int64_t position, int64_t tokens, int64_t first_row,
                        int64_t rows, vn_error *err)
{
	char      name[32];
	vn_status st;

	vn_queue_drain(s->queue);
	if ((st = vn_store_enter(s, err)))
		return st;
	snprintf(name, sizeof name, "step.%d", step);
	close_step(s);
	s->step = H5Gcreate2(s->file, name, H5P_DEFAULT, s->groups, H5P_DEFAULT);
	st = vn_store_settle(s, s->step >= 0 && vn_h5_put_int(s->step, "position", position) &&
	               vn_h5_put_int(s->step, "tokens", tokens) && vn_h5_put_int(s->step, "first_row", first_row) &&
	               vn_h5_put_int(s->step, "rows", rows), name, false, err);
	vn_h5_unlock();
	return st;
}

static bool put_alias(vn_store *s, int value, const char *of)
{
	const char *name = s->plan->value[value].name, *last;
	char        path[VN_NAME_MAX];

	strcpy(path, of);
	for (char *p = path; *p; p++)
		if (*p == '.')
			*p = '/';
	hid_t parent = vn_store_parent(s, name, &last);
	if (parent < 0)
		return false;
	if (H5Lexists(parent, last, H5P_DEFAULT) > 0)
		return true;
	return H5Lcreate_hard(s->step, path, parent, last, H5P_DEFAULT, H5P_DEFAULT) >= 0;
}

vn_status vn_store_aliases(vn_store *s, const bool *want, vn_error *err)
{
	vn_status st;
	bool      good = true;

	vn_queue_drain(s->queue);
	if ((st = vn_store_enter(s, err)))
		return st;
	for (int v = 0; good && v < s->plan->n_values; v++)
		if (want[v] && s->plan->value[v].alias_of >= 0)
			good = put_alias(s, v, s->plan->value[vn_plan_root(s->plan, v)].name);
	st = vn_store_settle(s, good, "second names", false, err);
	vn_h5_unlock();
	return st;
}

/* ---- the end ----------------------------------------------------------------------- */

static void stop_thread(vn_store *s)
{
	if (s->started) {
		vn_queue_close(s->queue);
		pthread_join(s->thread, NULL);
	}
	s->started = false;
	vn_block_free(s->filling);
	s->filling = NULL;
}

static bool mark_complete(hid_t file)
{
	const int64_t one = 1;
	hid_t         a = H5Aopen(file, "complete", H5P_DEFAULT);
	bool          good = a >= 0 && H5Awrite(a, H5T_NATIVE_INT64, &one) >= 0;
	if (a >= 0)
		good &= H5Aclose(a) >= 0;
	return good;
}

/* Everything to disk and HDF5 away. Without complete the mark stays 0. */
static vn_status close_file(vn_store *s, bool complete, vn_error *err)
{
	vn_status st = VN_OK;

	vn_h5_lock();
	close_step(s);
	if (s->file >= 0) {
		vn_driver_release(s->driver);
		/* Marked only when all else is on disk. */
		/* After a failure there is what vn_h5_room kept. */
		if (vn_store_status(s, NULL) || !(st = vn_h5_room(s->place.partial, err)))
			st = vn_store_publish(s, err);
		if (!st && complete && !mark_complete(s->file))
			st = vn_store_broken(s, "the mark that it is complete", err);
		if (H5Fclose(s->file) < 0 && !st)
			st = vn_store_broken(s, "its end", err);
		if (!st)
			st = vn_driver_publish(s->driver, err);
	}
	s->file = H5I_INVALID_HID;
	if (s->groups >= 0)
		H5Pclose(s->groups);
	s->groups = H5I_INVALID_HID;
	vn_h5_unlock();
	return st;
}

static void release(vn_store **store)
{
	vn_store *s = *store;
	vn_driver_destroy(s->driver);
	vn_queue_destroy(s->queue);
	vn_disk_close(&s->disk);
	free(s->ids);
	vn_place_close(&s->place);
	pthread_mutex_destroy(&s->lock);
	free(s);
	*store = NULL;
}

vn_status vn_store_commit(vn_store **store, vn_error *err)
{
	vn_store *s = *store;
	vn_status st = s->open ? vn_fail(err, VN_ERR_SHAPE, "%s: a tensor is not ended", s->place.partial) : VN_OK;

	stop_thread(s);
	if (!st)
		st = vn_store_status(s, err);
	vn_status closed = close_file(s, !st && !s->cut, st ? NULL : err);
	if (!st)
		st = closed;
	if (!st)
		st = vn_place_settle(&s->place, err);
	release(store);
	return st;
}

void vn_store_cut(vn_store *s)
{
	s->cut = true;
}

int64_t vn_store_tensors(vn_store *s, int64_t *bytes)
{
	vn_queue_drain(s->queue);
	if (bytes)
		*bytes = s->bytes;
	return s->tensors;
}

void vn_store_abandon(vn_store **store)
{
	vn_store *s = *store;

	if (!s)
		return;
	stop_thread(s);
	close_file(s, false, NULL);
	if (s->tensors == 0 && s->place.partial)
		unlink(s->place.partial); /* still locked, so it is ours */
	release(store);
}
