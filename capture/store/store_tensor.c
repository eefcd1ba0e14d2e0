/* store_tensor.c: how a store gets tensors: the sink that an engine fills, and the thread that
 * writes. See store.h. */
#include "capture/store/store_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 256 * 1024 }; /* fewest bytes that other threads copy and write: waking them takes time, too */
enum { SMALL = 16 * 1024 };  /* most bytes that are sent to the scribe: copying them takes less time than its answer */
enum { SLICE = 64 * 1024 };  /* part of a block that stays in the cache between statistics and digest */

/* ---- the giver's side -------------------------------------------------------- */

static vn_status take_block(vn_store *s, vn_error *err)
{
	s->filling = vn_queue_take(s->queue);
	return s->filling ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a block", s->place.partial);
}

static void post_block(vn_store *s)
{
	vn_queue_post(s->queue, s->filling);
	s->filling = NULL;
}

void vn_store_copier(vn_store *s, void (*copy)(void *to, const void *from, size_t bytes, int threads), int threads)
{
	s->copy = copy;
	s->threads = threads;
}

vn_status vn_store_begin(vn_store *s, const vn_tensor_label *l, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_status st = vn_store_status(s, err);

	if (!st && !s->filling)
		st = take_block(s, err);
	if (st)
		return st;
	s->filling->used = 0; /* drops a tensor that was never ended */
	s->filling->first = true;
	s->filling->label = *l;
	s->filling->dtype = dtype;
	s->filling->shape = *shape;
	s->left = vn_shape_count(shape);
	s->width = vn_dtype_size(dtype);
	s->open = true;
	return VN_OK;
}

vn_status vn_store_write(vn_store *s, const void *data, size_t elements, vn_error *err)
{
	const char *from = data;
	size_t      bytes = elements * s->width;
	vn_status   st = vn_store_status(s, err);

	if (st)
		return st;
	if (!s->open || (int64_t)elements > s->left)
		return vn_fail(err, VN_ERR_SHAPE, "%s: more numbers than the tensor's shape has", s->place.partial);
	s->left -= (int64_t)elements;
	while (bytes > 0) {
		if (!s->filling && (st = take_block(s, err)))
			return st;
		size_t room = VN_BLOCK_BYTES - s->filling->used, n = bytes < room ? bytes : room;
		if (s->copy && n >= LARGE)
			s->copy(s->filling->data + s->filling->used, from, n, s->threads);
		else
			memcpy(s->filling->data + s->filling->used, from, n);
		s->filling->used += n;
		from += n;
		bytes -= n;
		/* The last block is posted by `end`, which marks it. */
		if (s->filling->used == VN_BLOCK_BYTES && (bytes > 0 || s->left > 0))
			post_block(s);
	}
	return VN_OK;
}

vn_status vn_store_end(vn_store *s, vn_error *err)
{
	vn_status st = vn_store_status(s, err);

	if (!st && (!s->open || s->left != 0))
		st = vn_fail(err, VN_ERR_SHAPE, "%s: %" PRId64 " numbers fewer than the tensor's shape has", s->place.partial,
		             s->left);
	if (!st && !s->filling)
		st = take_block(s, err);
	s->open = false;
	if (st)
		return st;
	s->filling->last = true;
	post_block(s);
	return VN_OK;
}

static vn_status begin_value(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_store             *s = ctx;
	const vn_tensor_label l = vn_label_of_value(s->plan, value);
	return vn_store_begin(s, &l, dtype, shape, err);
}

static vn_status write_piece(void *ctx, const void *data, size_t elements, vn_error *err)
{
	return vn_store_write(ctx, data, elements, err);
}

static vn_status end_value(void *ctx, vn_error *err)
{
	return vn_store_end(ctx, err);
}

vn_sink vn_store_sink(vn_store *s)
{
	return (vn_sink) { .ctx = s, .begin = begin_value, .write = write_piece, .end = end_value };
}

/* ---- the storing thread's side ------------------------------------------------ */

static const char *name_of(const vn_store *s)
{
	return s->tensor.about.label.name;
}

/* Waits until the current tensor is written. */
static vn_status wait_for_writers(vn_store *s, vn_error *err)
{
	return s->writers ? vn_writers_wait(s->writers, err) : VN_OK;
}

/* Drops the current tensor. */
static void drop_tensor(vn_store *s)
{
	vn_error        err = { "" };
	const vn_status st = wait_for_writers(s, &err);

	vn_store_note_failure(s, st, &err, NULL);
	s->tensor.open = false;
	if (s->tensor.digest)
		vn_digester_finish(s->tensor.digest);
	s->tensor.digest = NULL;
}

/* Notes what the tensor of this block is. */
static vn_status begin_tensor(vn_store *s, const vn_block *b, vn_error *err)
{
	drop_tensor(s);
	s->tensor.about = (vn_scribe_tensor) { .label = b->label, .dtype = b->dtype, .shape = b->shape };
	s->tensor.sum = (vn_stats_sum) { 0 };
	s->tensor.digest = vn_digester_create();
	return s->tensor.digest ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "%s: no memory", s->place.partial);
}

static void describe_tensor(vn_store *s)
{
	s->tensor.about.stats = vn_stats_finish(&s->tensor.sum);
	s->tensor.about.digest = vn_digester_finish(s->tensor.digest);
	s->tensor.digest = NULL;
}

/* Adds numbers to the statistics and the digest of the current tensor. */
static void add_numbers(vn_store *s, const vn_block *b)
{
	const size_t width = vn_dtype_size(s->tensor.about.dtype);

	for (size_t i = 0; i < b->used; i += SLICE) {
		const size_t n = b->used - i < SLICE ? b->used - i : SLICE;
		vn_stats_add(&s->tensor.sum, b->data + i, s->tensor.about.dtype, n / width);
		vn_digester_add(s->tensor.digest, b->data + i, n);
	}
}

/* Sends the small tensors that are waiting. */
static vn_status send_small(vn_store *s, vn_error *err)
{
	const int64_t bytes = s->small.bytes;

	s->small.bytes = 0;
	const bool any = s->small.m.n || s->small.m.bad; /* bad: for want of memory, which must be told */
	return any ? vn_store_finish(s, VN_SCRIBE_SMALL, &s->small.m, bytes, err) : VN_OK;
}

/* Files a whole tensor: it is sent with others, at the latest when no further block waits
 * (file_all). */
static vn_status file_small(vn_store *s, const vn_block *b, vn_error *err)
{
	enum { ENOUGH = 64 << 10 }; /* bytes of a message */
	const vn_status st = begin_tensor(s, b, err);

	if (st)
		return st;
	add_numbers(s, b);
	describe_tensor(s);
	vn_message_put_bytes(&s->small.m, &s->tensor.about, sizeof s->tensor.about);
	vn_message_put_bytes(&s->small.m, b->data, b->used);
	s->small.bytes += (int64_t)b->used;
	return s->small.m.n < ENOUGH ? VN_OK : send_small(s, err);
}

/* Creates its dataset, without a name yet, and its storage. */
static vn_status start_tensor(vn_store *s, const vn_block *b, vn_error *err)
{
	const int64_t bytes = vn_shape_count(&b->shape) * (int64_t)vn_dtype_size(b->dtype);
	vn_message    m = { 0 };
	vn_status     st = begin_tensor(s, b, err);

	st = st ? st : send_small(s, err);
	if (st)
		return st;
	vn_message_put_bytes(&m, &s->tensor.about, sizeof s->tensor.about);
	st = vn_store_do(s, VN_SCRIBE_START, &m, &s->tensor.at, err);
	s->tensor.end = s->tensor.at + bytes;
	s->tensor.open = !st;
	return st;
}

/* For the first large block: short recordings need no further threads. */
static bool start_writers(vn_store *s)
{
	if (!s->writers && !s->alone)
		s->alone = !(s->writers = vn_writers_create(s->place.fd, s->place.partial, s->queue));
	return s->writers;
}

static vn_status file_numbers(vn_store *s, vn_block *b, vn_error *err)
{
	vn_status st = VN_OK;

	if (s->tensor.at + (int64_t)b->used > s->tensor.end)
		return vn_fail(err, VN_ERR_SHAPE, "%s: %s: more numbers than its shape has", s->place.partial, name_of(s));
	const bool beside = b->used >= LARGE && start_writers(s);
	if (beside)
		vn_writers_post(s->writers, b, s->tensor.at, name_of(s));
	add_numbers(s, b);
	if (!beside)
		st = vn_disk_write(&s->disk, name_of(s), b->data, b->used, s->tensor.at, err);
	s->tensor.at += (int64_t)b->used;
	return st;
}

static vn_status finish_tensor(vn_store *s, vn_error *err)
{
	vn_message      m = { 0 };
	const vn_status written = wait_for_writers(s, err);

	if (written)
		return written;
	if (s->tensor.at != s->tensor.end)
		return vn_fail(err, VN_ERR_SHAPE, "%s: %s: fewer numbers than its shape has", s->place.partial, name_of(s));
	describe_tensor(s);
	vn_message_put_bytes(&m, &s->tensor.about, sizeof s->tensor.about);
	drop_tensor(s);
	return vn_store_finish(s, VN_SCRIBE_FINISH, &m, s->tensor.sum.n * (int64_t)vn_dtype_size(s->tensor.about.dtype),
	                       err);
}

static vn_status file_block(vn_store *s, vn_block *b, vn_error *err)
{
	vn_status st = VN_OK;

	if (b->first && b->last && b->used <= SMALL)
		return file_small(s, b, err);
	if (b->first)
		st = start_tensor(s, b, err);
	/* Ignores a piece of a dropped tensor. */
	if (!st && !s->tensor.open)
		return VN_OK;
	st = st ? st : file_numbers(s, b, err);
	return st || !b->last ? st : finish_tensor(s, err);
}

static void file_all(vn_store *s)
{
	vn_block *b;

	while ((b = vn_queue_fetch(s->queue))) {
		if (!vn_store_status(s, NULL)) {
			vn_error  err;
			vn_status st = file_block(s, b, &err);
			if (!st && !vn_queue_waits(s->queue)) /* before it is given back, which vn_queue_drain waits for */
				st = send_small(s, &err);
			vn_store_note_failure(s, st, &err, NULL);
		}
		vn_queue_give_back(s->queue, b);
	}
	drop_tensor(s);
	vn_message_finish(&s->small.m);
	vn_writers_destroy(s->writers);
	s->writers = NULL;
}

/* This thread forks the scribe, not the creator of the store, because the scribe ends with the
 * thread that forked it. */
void *vn_store_thread(void *store)
{
	vn_store       *s = store;
	vn_error        err;
	const vn_status st = vn_scribe_start(&s->scribe, &s->place, &err);

	vn_store_note_failure(s, st, &err, NULL);
	sem_post(&s->begun);
	file_all(s);
	return NULL;
}
