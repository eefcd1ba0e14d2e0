/* dump_npz.c: reads a .npz file, a zip archive of .npy files (numpy.savez, savez_compressed).
 *
 * libzip and zlib read it in child processes (child.h): one walks the list of members and sends
 * their first bytes, others unpack whole members into shared memory. The headers of .npy files are
 * parsed here.
 */
#include "capture/import/dump.h"

#include "capture/file/child.h"
#include "capture/recording/scratch.h"
#include "libref/base/alloc.h"
#include "libref/base/map.h"
#include "libref/base/order.h"
#include "libref/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

/* deflate expands a byte to at most 1032; a larger ratio is invalid */
enum { MOST_TIMES = 1100, HEAD = 1 << 16 };
/* An archive of zeros may be a thousandth of what it holds. Beyond this, no small file fills a disk
 * unless somebody unpacks it first. */
enum { DENSE_BYTES = 1 << 30, DENSE_TIMES = 100 };
enum { LOCAL_HEADER = 30 }; /* bytes before a member's name and data, at least */
/* Read-ahead: the whole of a small archive, otherwise four times as many members as last time. */
enum { AHEAD_BYTES = 64 << 20, AHEAD_GROWS = 4, AHEAD_MOST = 1024 };

enum { FAILED, MEMBER, DONE }; /* frame types; a MEMBER frame begins with: */
typedef struct npz_member {
	uint64_t size, packed;
	char     name[2 * VN_NAME_MAX];
} npz_member;

typedef struct archive {
	vn_map     whole; /* so that a change of the file is seen; child processes read it */
	int        fd;
	int64_t    bytes;
	uint64_t  *size; /* (n) of each member */
	size_t     n;
	uint64_t   all;
	vn_scratch room; /* members [from, to), each at a multiple of 64 */
	size_t     from, to;
} archive;

static vn_status refuse_member(const vn_dump *d, const char *name, const char *why, vn_error *err)
{
	char shown[VN_NAME_MAX];
	snprintf(shown, sizeof shown, "%.*s", VN_NAME_MAX - 1, name);
	return vn_fail(err, VN_ERR_FORMAT, "%s: %s: %s", d->path, shown, why);
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

/* ---- in a child -------------------------------------------------------------------------- */

typedef struct unpack_task {
	const char *path;
	archive    *s;
	int         pipe;
	zip_error_t error;
	uint64_t    at;     /* of the file */
	uint64_t    lowest; /* byte read since this was set */
} unpack_task;

/* Bytes [from, to) of the file, of a member. */
typedef struct member_range {
	uint64_t from, to;
	size_t   which;
} member_range;

/* libzip's own reader opens the file by name; the sandbox has only a descriptor,
 * so this one uses pread. */
static zip_int64_t read_file(void *ctx, void *data, zip_uint64_t bytes, zip_source_cmd_t what)
{
	unpack_task *t = ctx;
	ssize_t      n;

	switch (what) {
	case ZIP_SOURCE_OPEN: t->at = 0; return 0;
	case ZIP_SOURCE_READ:
		n = pread(t->s->fd, data, bytes, (off_t)t->at);
		if (n < 0)
			zip_error_set(&t->error, ZIP_ER_READ, errno);
		t->lowest = t->at < t->lowest ? t->at : t->lowest;
		t->at += n > 0 ? (uint64_t)n : 0;
		return n;
	case ZIP_SOURCE_SEEK: {
		const zip_int64_t to = zip_source_seek_compute_offset(t->at, (zip_uint64_t)t->s->bytes, data, bytes, &t->error);
		t->at = to < 0 ? t->at : (uint64_t)to;
		return to < 0 ? -1 : 0;
	}
	case ZIP_SOURCE_TELL: return (zip_int64_t)t->at;
	case ZIP_SOURCE_STAT: {
		zip_stat_t x;
		zip_stat_init(&x);
		x.size = (zip_uint64_t)t->s->bytes;
		x.valid = ZIP_STAT_SIZE;
		memcpy(data, &x, sizeof x);
		return sizeof x;
	}
	case ZIP_SOURCE_ERROR: return zip_error_to_data(&t->error, data, bytes);
	case ZIP_SOURCE_SUPPORTS:
		return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
		                                      ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
		                                      ZIP_SOURCE_SUPPORTS, -1);
	default: return 0;
	}
}

static zip_t *open_zip(unpack_task *t, int pipe)
{
	zip_error_t   why;
	zip_source_t *source;
	zip_t        *z = NULL;

	t->pipe = pipe;
	zip_error_init(&t->error);
	zip_error_init(&why);
	if ((source = zip_source_function_create(read_file, t, &why)))
		z = zip_open_from_source(source, ZIP_RDONLY, &why);
	if (!z)
		vn_child_refuse(pipe, "%s: not a .npz file: %s", t->path, zip_error_strerror(&why));
	return z;
}

/* Reads the first n bytes of a member; fewer are an error. */
static void read_member(unpack_task *t, zip_t *z, size_t which, const char *name, void *to, size_t n)
{
	zip_file_t *f = zip_fopen_index(z, which, 0);
	size_t      at = 0;
	zip_int64_t got = 1;
	if (!f)
		vn_child_refuse(t->pipe, "%s: %.127s: %s", t->path, name, zip_strerror(z));
	while (at < n && (got = zip_fread(f, (char *)to + at, n - at)) > 0)
		at += (size_t)got;
	/* libzip checks the CRC when a read reaches the end, so read past the last byte. */
	char one;
	if (at == n && n > 0 && got >= 0)
		got = zip_fread(f, &one, 1);
	if (at < n || got < 0)
		vn_child_refuse(t->pipe, "%s: %.127s: %s", t->path, name, got < 0 ? zip_file_strerror(f) : "ends too early");
	zip_fclose(f);
}

static void stat_member(const unpack_task *t, zip_t *z, size_t which, zip_stat_t *x)
{
	const zip_uint64_t need = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
	if (zip_stat_index(z, which, ZIP_FL_ENC_RAW, x) != 0 || (x->valid & need) != need)
		vn_child_refuse(t->pipe, "%s: a member: %s", t->path, zip_strerror(z));
}

VN_ORDER_BY(by_start, member_range, VN_ORDER(x->from, y->from), VN_ORDER(x->which, y->which))

/* Members that share bytes make a small archive look large, and differ from program to program.
 * libzip does not tell where a member is. But to read one it first reads the member's own header,
 * and nothing before that. */
static void refuse_overlap(const unpack_task *t, zip_t *z, member_range *r, size_t n)
{
	qsort(r, n, sizeof *r, by_start);
	for (size_t i = 1; i < n; i++)
		if (r[i].from < r[i - 1].to) {
			const char *const a = zip_get_name(z, r[i - 1].which, ZIP_FL_ENC_RAW), *const b = zip_get_name(
																					   z, r[i].which, ZIP_FL_ENC_RAW);
			vn_child_refuse(t->pipe, "%s: %.127s and %.127s overlap: no program writes such an archive", t->path,
			                a ? a : "a member", b ? b : "a member");
		}
}

/* Sends each member's first bytes as a frame. */
static void list_members(void *ctx, int pipe)
{
	static struct {
		npz_member    m;
		unsigned char head[HEAD];
	} frame;
	unpack_task *t = ctx;
	zip_stat_t   x;

	vn_child_patience(60);
	zip_t            *z = open_zip(t, pipe);
	const zip_int64_t n = zip_get_num_entries(z, 0);
	member_range     *range = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *range);
	if (!range)
		vn_child_refuse(pipe, "%s: no memory for %lld members", t->path, (long long)n);
	for (zip_int64_t i = 0; i < n; i++) {
		stat_member(t, z, (size_t)i, &x);
		const size_t some = x.size < HEAD ? (size_t)x.size : HEAD, name = strlen(x.name);
		frame.m = (npz_member) { .size = x.size, .packed = x.comp_size };
		if (name < 5 || strcmp(x.name + name - 4, ".npy") != 0 || name >= sizeof frame.m.name)
			vn_child_refuse(pipe, "%s: %.127s: is not a .npy file", t->path, x.name);
		if (x.size / MOST_TIMES > x.comp_size)
			vn_child_refuse(pipe, "%s: %.127s: cannot be so small", t->path, x.name);
		strcpy(frame.m.name, x.name);
		t->lowest = UINT64_MAX;
		read_member(t, z, (size_t)i, x.name, frame.head, some);
		if (x.comp_size > (uint64_t)t->s->bytes)
			vn_child_refuse(pipe, "%s: %.127s: is larger than the archive", t->path, x.name);
		if (t->lowest != UINT64_MAX) /* an empty one may not be read */
			range[i] = (member_range) { t->lowest, t->lowest + LOCAL_HEADER + x.comp_size, (size_t)i };
		vn_child_send(pipe, MEMBER, &frame, sizeof frame.m + some);
	}
	refuse_overlap(t, z, range, (size_t)n);
	free(range);
	vn_child_send(pipe, DONE, "", 0);
}

/* Reads members [from, to) into the shared memory. */
static void read_members(void *ctx, int pipe)
{
	unpack_task *t = ctx;
	archive     *s = t->s;
	zip_stat_t   x;

	vn_child_patience(60 + (int)(s->room.bytes / 20000000 < 100000 ? s->room.bytes / 20000000
	                                                               : 100000)); /* zlib is faster than this rate */
	zip_t         *z = open_zip(t, pipe);
	unsigned char *to = s->room.data;
	for (size_t i = s->from; i < s->to; i++) {
		stat_member(t, z, i, &x);
		if (x.size != s->size[i])
			vn_child_refuse(pipe, "%s: %.127s: has changed", t->path, x.name);
		read_member(t, z, i, x.name, to, (size_t)x.size);
		to += round_up(x.size);
	}
	vn_child_send(pipe, DONE, "", 0);
}

/* ---- here ---------------------------------------------------------------------------------- */

/* head (bytes): what the child sent of the member. */
static vn_status add_member(vn_dump *d, const npz_member *m, const unsigned char *head, size_t bytes, vn_error *err)
{
	archive     *s = d->state;
	vn_npy       npy;
	char         name[sizeof m->name], where[600];
	int          step;
	const size_t n = strnlen(m->name, sizeof m->name);
	if (n < 5 || n == sizeof m->name || m->size / MOST_TIMES > (uint64_t)s->bytes ||
	    bytes != (m->size < HEAD ? m->size : HEAD))
		return refuse_member(d, "a member", "its contents are inconsistent", err);
	snprintf(name, sizeof name, "%.*s", (int)(n - 4), m->name);
	snprintf(where, sizeof where, "%.400s: %.150s", d->path, m->name);
	vn_text_clean(where, sizeof where);
	vn_status st = vn_npy_parse(where, head, bytes, (size_t)m->size, &npy, err);
	if (st)
		return st;
	s->size = vn_alloc_grown(s->size, s->n, sizeof *s->size);
	vn_array *a = vn_dump_add(d, where, vn_dump_step_of(name, &step), NULL, NULL, err);
	if (!a)
		return VN_ERR_FORMAT;
	s->all += round_up(m->size);
	s->size[s->n] = m->size;
	a->step = step;
	a->which = s->n++;
	a->at = npy.at;
	a->layout = npy.layout;
	a->shape = npy.shape;
	return VN_OK;
}

/* Frames until DONE. */
static vn_status run_child(vn_dump *d, void (*work)(void *ctx, int pipe), vn_error *err)
{
	archive            *s = d->state;
	unpack_task         t = { .path = d->path, .s = s };
	const vn_child_task how = { .path = d->path,
		                        .what = "zip",
		                        .file = s->fd,
		                        .slow = true,
		                        .work = work,
		                        .ctx = &t,
		                        .shared = s->room.data,
		                        .shared_bytes = s->room.bytes };
	vn_child            child;
	vn_child_frame      f = { .kind = FAILED };
	vn_status           st = vn_child_start(&child, &how, err);

	while (!st && f.kind != DONE) {
		npz_member m;
		if ((st = vn_child_receive(&child, &f, err)))
			break;
		if (f.kind == MEMBER && work == list_members && f.bytes >= sizeof m) {
			memcpy(&m, f.data, sizeof m);
			st = add_member(d, &m, (const unsigned char *)f.data + sizeof m, f.bytes - sizeof m, err);
		} else if (f.kind != DONE) {
			st = vn_child_refused(d->path, f.kind == FAILED ? f.data : NULL, f.kind == FAILED ? f.bytes : 0, err);
		}
		free(f.data);
	}
	vn_child_end(&child);
	return st;
}

/* Chooses how many members to read from `which` on, depending on how the last ones were used. */
static void choose_ahead(archive *s, size_t which, uint64_t *bytes)
{
	const size_t last = s->to - s->from;
	size_t       most = which == s->to && which > 0 ? last * AHEAD_GROWS : 1;

	if (s->all <= AHEAD_BYTES) {
		which = 0;
		most = s->n;
	} else if (most > AHEAD_MOST) {
		most = AHEAD_MOST;
	}
	s->from = s->to = which;
	*bytes = 0;
	while (s->to < s->n && s->to - which < most && (s->to == which || *bytes + round_up(s->size[s->to]) <= AHEAD_BYTES))
		*bytes += round_up(s->size[s->to++]);
}

static vn_status bytes_of(vn_dump *d, const vn_array *a, const unsigned char **data, vn_error *err)
{
	archive  *s = d->state;
	uint64_t  bytes = 0;
	vn_status st = VN_OK;

	if (!s->room.data || a->which < s->from || a->which >= s->to) {
		vn_scratch_end(&s->room);
		choose_ahead(s, a->which, &bytes);
		if (!vn_scratch_make(&s->room, (size_t)bytes))
			return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %llu bytes", d->path, a->name,
			               (unsigned long long)bytes);
		if ((st = run_child(d, read_members, err))) {
			vn_scratch_end(&s->room);
			return st;
		}
		vn_scratch_keep(&s->room);
	}
	const unsigned char *at = s->room.data;
	for (size_t i = s->from; i < a->which; i++)
		at += round_up(s->size[i]);
	*data = at + a->at;
	return VN_OK;
}

static void close_archive(vn_dump *d)
{
	archive *s = d->state;
	vn_scratch_end(&s->room);
	vn_map_close(&s->whole);
	if (s->fd >= 0)
		close(s->fd);
	VN_FREE(s->size, s);
}

vn_status vn_dump_open_npz(vn_dump *d, vn_error *err)
{
	archive  *s = d->state = vn_alloc_zero(1, sizeof *s);
	char      stored[24], held[24];
	vn_status st;

	d->kind = "npz";
	d->bytes = bytes_of;
	d->close = close_archive;
	s->fd = -1;
	if ((st = vn_map_open(d->path, &s->whole, err)))
		return st;
	if ((s->fd = vn_plain_open(d->path, O_RDONLY)) < 0)
		return vn_fail(err, VN_ERR_IO, "%s: %s", d->path, strerror(errno));
	s->bytes = (int64_t)s->whole.bytes;
	st = run_child(d, list_members, err);
	return st || s->all <= DENSE_BYTES || s->all / DENSE_TIMES <= (uint64_t)s->bytes
	           ? st
	           : vn_fail(err, VN_ERR_FORMAT,
	                     "%s: its %s hold %s: if that is right, unzip it into a folder, and import the folder", d->path,
	                     vn_text_bytes(s->bytes, stored), vn_text_bytes((int64_t)s->all, held));
}
