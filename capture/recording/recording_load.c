/* recording_load.c: reads numbers that only HDF5 can read (compressed, chunked, compact or
 * big-endian), in child processes (child.h).
 *
 * A child takes some milliseconds, whatever it reads. So if small tensors are requested one after
 * the other, it also reads the next ones. Tensors that were read ahead and not requested before the
 * next child starts are freed.
 */
#include "capture/recording/recording_internal.h"

#include "capture/file/child.h"
#include "libref/base/system.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* SMALL_BYTES: size of a small tensor. Read-ahead takes at most this many bytes and tensors, four
 * times as many as last time. */
enum { SMALL_BYTES = 1 << 20, AHEAD_BYTES = 4 << 20, AHEAD_MOST = 1024, AHEAD_GROWS = 4, SKIPPED = 64 };

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* One child for each processor when there is much to decompress. */
static int children_for(size_t bytes)
{
	const size_t processors = (size_t)vn_processors();
	size_t       n = bytes / VN_SCRATCH_FILE;
	n = n < processors ? n : processors;
	return n > VN_CHILDREN ? VN_CHILDREN : n > 1 ? (int)n : 1;
}

/* What a child needs to know of entry i. */
static vn_scan_one scan_of(const vn_recording *r, int i)
{
	const vn_entry_source *s = &r->source[i];
	vn_scan_one            tensor = { .dtype = r->entry[i].dtype, .address = s->address, .bytes = (size_t)s->bytes };

	strcpy(tensor.name, r->entry[i].name);
	return tensor;
}

/* Reads n tensors in `children` children, and waits until all have read their shares. */
static vn_status read_numbers(const vn_recording *r, const vn_scan_one *tensor, int n, int children, vn_scratch to,
                              vn_error *err)
{
	vn_scan scan = {
		.fd = r->fd, .path = r->path, .bytes = r->bytes, .tensor = tensor, .n = n, .to = to, .children = children
	};
	const vn_child_task task = { .path = r->path,
		                         .file = r->fd,
		                         .slow = true,
		                         .work = vn_scan_numbers,
		                         .ctx = &scan,
		                         .shared = to.data,
		                         .shared_bytes = to.bytes };
	vn_child            child[VN_CHILDREN], *list[VN_CHILDREN];
	vn_status           st = VN_OK;
	int                 started = 0;

	for (; started < children && !st; started++) {
		scan.child = started;
		list[started] = &child[started];
		st = vn_child_start(&child[started], &task, err);
	}
	for (int left = started; left > 0 && !st; left--) {
		int            which;
		vn_child_frame f;
		if ((st = vn_child_receive_any(list, started, &which, &f, err)) == VN_ERR_FORMAT)
			st = VN_ERR_IO; /* it crashed or hung: no verdict on the numbers */
		if (!st && f.kind != VN_FRAME_DONE)
			st = vn_child_refused(r->path, f.data, f.bytes, err);
		free(f.data);
		vn_child_end(&child[which]);
	}
	while (started > 0)
		vn_child_end(&child[--started]);
	return st;
}

static vn_status load_once(vn_recording *r, int i, vn_error *err)
{
	const vn_entry_source *s = &r->source[i];
	const vn_scan_one      tensor = scan_of(r, i);
	vn_scratch             to;

	if (!vn_scratch_make(&to, tensor.bytes))
		return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no room for %zu bytes in $TMPDIR, /var/tmp, /tmp or memory", r->path,
		               tensor.name, tensor.bytes);
	const vn_status st = s->foreign ? r->foreign.read(r->foreign.context, s->foreign - 1, 0, tensor.bytes, to.data, err)
	                                : read_numbers(r, &tensor, 1, children_for(tensor.bytes), to, err);
	if (st)
		vn_scratch_end(&to);
	else
		vn_scratch_keep(&to);
	r->source[i].loaded = to;
	r->in_files += to.file != 0;
	return st;
}

/* HDF5 may crash for lack of memory, so the file is at fault only when it crashes twice. */
static vn_status load_alone(vn_recording *r, int i, vn_error *err)
{
	const vn_status st = load_once(r, i, err);
	return st == VN_ERR_FORMAT || st == VN_ERR_IO ? load_once(r, i, err) : st;
}

/* ---- many small ones ------------------------------------------------------------------------ */

/* Whether entry i may be read together with others. */
static bool is_small(const vn_recording *r, int i)
{
	const vn_entry_source *s = &r->source[i];
	return s->offset < 0 && !s->foreign && !s->gathered && r->entry[i].same_as < 0 && s->bytes > 0 &&
	       s->bytes <= SMALL_BYTES && !s->loaded.data;
}

/* Drops what was read ahead and not used. */
static void drop_ahead(vn_recording *r)
{
	for (int k = r->ahead.from; k < r->ahead.to; k++)
		if (r->source[k].ahead) {
			vn_scratch_end(&r->source[k].loaded);
			r->source[k].ahead = false;
		}
}

/* Allocates and fills the tensors in order; false: no memory. */
static bool take_out(vn_recording *r, const int *entry, int n, const unsigned char *from)
{
	for (int k = 0; k < n; k++) {
		vn_entry_source *s = &r->source[entry[k]];
		if (!vn_scratch_make(&s->loaded, (size_t)s->bytes))
			return k > 0; /* the requested one comes first */
		vn_scratch_keep(&s->loaded);
		memcpy(s->loaded.data, from, (size_t)s->bytes);
		s->ahead = k > 0;
		from += vn_scan_span((size_t)s->bytes);
	}
	return true;
}

/* Reads entry i and up to `most` small ones in all. On failure i stays unloaded: reading it alone
 * tells what is wrong. */
static void load_ahead(vn_recording *r, int i, int most)
{
	VN_FREED vn_scan_one              *many = malloc((size_t)most * sizeof *many);
	VN_FREED int                      *entry = malloc((size_t)most * sizeof *entry);
	VN_ENDS(vn_scratch_end) vn_scratch room = { 0 };
	vn_error                           why;
	size_t                             bytes = 0;
	int                                n = 0, to = i;

	for (; many && entry && to < r->n_entries && n < most && to - i < SKIPPED + most; to++) {
		if (!is_small(r, to))
			continue;
		const size_t span = vn_scan_span((size_t)r->source[to].bytes);
		if (n > 0 && bytes + span > AHEAD_BYTES)
			break;
		many[n] = scan_of(r, to);
		entry[n++] = to;
		bytes += span;
	}
	r->ahead.from = i;
	r->ahead.to = to;
	r->ahead.many = n;
	if (n > 1 && vn_scratch_make(&room, bytes) &&
	    (read_numbers(r, many, n, 1, room, &why) || !take_out(r, entry, n, room.data)))
		r->ahead.many = 0;
}

static vn_status load_entry(vn_recording *r, int i, vn_error *err)
{
	const bool next = r->ahead.many > 0 && i >= r->ahead.to && i - r->ahead.to <= SKIPPED;
	const bool failed = r->ahead.many == 0 && i >= r->ahead.from && i < r->ahead.to;
	const int  grown = r->ahead.many * AHEAD_GROWS;
	if (is_small(r, i) && !failed) {
		drop_ahead(r);
		if (next) {
			load_ahead(r, i, grown < AHEAD_MOST ? grown : AHEAD_MOST);
		} else {
			r->ahead.from = i;
			r->ahead.to = i + 1;
			r->ahead.many = 1;
		}
	}
	return r->source[i].loaded.data ? VN_OK : load_alone(r, i, err);
}

/* Threads that measure parts of one tensor may arrive here together. */
vn_status vn_recording_load(vn_recording *r, int i, const void **data, vn_error *err)
{
	pthread_mutex_lock(&one);
	vn_status st = r->source[i].loaded.data ? VN_OK : load_entry(r, i, err);
	st = st ? st : vn_proof_ask(r, i, err);
	r->source[i].ahead = false;
	*data = r->source[i].loaded.data;
	pthread_mutex_unlock(&one);
	return st;
}

vn_status vn_recording_each_stored(vn_recording *r, int i, vn_stored_do *each, vn_error *err)
{
	const vn_gathered *g = r->source[i = vn_recording_primary(r, i)].gathered;
	vn_status          st = VN_OK;

	if (!g)
		return each(r, i, err);
	for (int k = 0; k < g->n && !st; k++) {
		int           entry;
		vn_recording *of = vn_gathered_part(r, g, k, &entry);
		st = vn_recording_each_stored(of, entry, each, err);
	}
	return st;
}

static bool needs_process(const vn_recording *r, int i)
{
	const vn_entry_source *s = &r->source[i];
	return s->bytes > 0 && s->offset < 0 && !s->foreign;
}

static vn_status load_stored(vn_recording *r, int i, vn_error *err)
{
	const void *data;
	return needs_process(r, i) ? vn_recording_load(r, i, &data, err) : VN_OK;
}

vn_status vn_recording_fetch(vn_recording *r, int i, vn_error *err)
{
	return vn_recording_each_stored(r, i, load_stored, err);
}

static vn_status refuse_process(vn_recording *r, int i, vn_error *err)
{
	(void)err;
	return needs_process(r, i) ? VN_ERR_UNSUPPORTED : VN_OK;
}

bool vn_recording_direct(vn_recording *r)
{
	bool direct = true;
	for (int i = 0; i < r->n_entries && direct; i++)
		direct = vn_recording_each_stored(r, i, refuse_process, NULL) == VN_OK;
	return direct;
}

void vn_recording_end(vn_recording *r, vn_scratch *s)
{
	pthread_mutex_lock(&one);
	if (s->data) { /* else nothing is written, since others may read (vn_recording_share) */
		r->in_files -= s->file != 0;
		vn_scratch_end(s);
	}
	pthread_mutex_unlock(&one);
}
