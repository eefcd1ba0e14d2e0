/* scribe_file.c: how the scribe creates and completes a checkpoint file, and writes steps and the
 * structure of tensors. See scribe.h; steps of files without readers before their end:
 * scribe_whole.c; /run, /model and /plan: scribe_about.c. */
#include "capture/store/scribe_internal.h"

#include "capture/file/disk.h"
#include "capture/file/object_header.h"
#include "libref/base/order.h"
#include "libref/base/system.h"
#include "libref/base/trouble.h"

#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- a new file ---------------------------------------------------------------------------- */

/* Words, so that all of it is a page (driver.h). */
static bool put_root(hid_t file)
{
	char      now[32];
	time_t    t = time(NULL);
	struct tm tm;

	strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	return vn_h5_put_word(file, "format", "vernier-checkpoint") && vn_h5_put_int(file, "format_version", 1) &&
	       vn_h5_put_int(file, "complete", 0) && vn_h5_put_word(file, "created", now) &&
	       vn_h5_put_word(file, "tool", "vernier") && vn_h5_put_word(file, "tool_version", VERNIER_VERSION);
}

/* How a group stores its links: up to `most` of them in its header, in blocks, the first with room
 * for `expected`; more of them in an index.
 *
 * In the header, adding a link is a single write (driver.h), if the first block has space for it.
 * Steps are links of the root and may be thousands, for which one block would be too large: kill -9
 * may end a write between two pages. Links beyond the first few go into further blocks, which are
 * written before the block that refers to them.
 *
 * But HDF5's time grows with the square of the links in a header: 4000 names took 80 s. So when
 * nothing is published before the end (driver.h, hold), steps beyond the first few use an index,
 * which takes writes to several blocks; groups in steps are written without HDF5 (bulk.h). */
enum { FEW = 32, MANY = 65535 };
/* Bytes that HDF5 allocates at a time for the structure of a file that is written as a whole. With
 * the superblock before them, the first are a page: one write (driver.h). */
enum { META = VN_DISK_PAGE - 64 };
static bool put_links(hid_t props, unsigned most, unsigned expected)
{
	return H5Pset_link_phase_change(props, most, 0) >= 0 && H5Pset_est_link_info(props, expected, 16) >= 0 &&
	       H5Pset_obj_track_times(props, false) >= 0 && H5Pset_attr_phase_change(props, 64, 0) >= 0;
}

/* Message: the links expected in a group; whether nothing is published before the end. */
static vn_status create_file(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	const int64_t links = vn_take_int(m);
	const bool    whole = vn_take_int(m) != 0; /* then no group needs to be continued */
	hid_t         fapl = H5Pcreate(H5P_FILE_ACCESS), fcpl = H5Pcreate(H5P_FILE_CREATE);
	hid_t         driver = (hid_t)vn_driver_id();
	vn_status     st = VN_OK;
	f->links = links;
	f->groups = H5Pcreate(H5P_GROUP_CREATE);
	f->bulk = whole ? vn_bulk_create(f->fd, f->path, f->driver) : NULL;
	/* Format 1.8, because the later superblock marks a file that was not closed, and only h5clear
	 * makes such a file readable. */
	if (whole)
		vn_driver_gather(f->driver);
	if (fapl < 0 || fcpl < 0 || f->groups < 0 || driver < 0 || (whole && !f->bulk) ||
	    H5Pset_driver(fapl, driver, vn_driver_info(f->driver)) < 0 ||
	    H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0 || H5Pset_meta_block_size(fapl, META) < 0 ||
	    !(whole ? put_links(fcpl, FEW, FEW)
	            : put_links(fcpl, MANY, 16) && put_links(f->groups, MANY, links < MANY ? (unsigned)links : MANY)) ||
	    (f->file = H5Fcreate(f->path, H5F_ACC_TRUNC, fcpl, fapl)) < 0 || !put_root(f->file))
		st = vn_scribe_file_failed(f, "a new file", err);
	else
		st = vn_scribe_file_publish(f, err);
	if (!st && whole)
		vn_driver_hold(f->driver);
	vn_h5_close(fcpl);
	vn_h5_close(fapl);
	return st;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void close_step(vn_scribe_file *f)
{
	vn_h5_close(f->parent);
	vn_h5_close(f->more);
	vn_h5_close(f->step);
	f->parent = f->more = f->step = H5I_INVALID_HID;
	f->n_more = 0;
	vn_tree_free(f->names, free);
	f->names = NULL;
}

/* Message: number, position, tokens, first row, rows. */
static vn_status begin_step(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	char      name[32];
	const int number = (int)vn_take_int(m);
	int64_t   value[VN_SCRIBE_STEP_VALUES];
	bool      good;

	for (int i = 0; i < VN_SCRIBE_STEP_VALUES; i++)
		value[i] = vn_take_int(m);
	snprintf(name, sizeof name, "step.%d", number);
	if (f->bulk && !m->bad)
		return vn_scribe_whole_step(f, number, value, err);
	close_step(f);
	good = !m->bad && (f->step = H5Gcreate2(f->file, name, H5P_DEFAULT, f->groups, H5P_DEFAULT)) >= 0;
	for (int i = 0; good && i < VN_SCRIBE_STEP_VALUES; i++)
		good = vn_h5_put_int(f->step, vn_scribe_step_value[i], value[i]);
	return vn_scribe_file_settle(f, good, name, false, err);
}

/* The last group for names without a layer that has room for another link: the step's own, or one
 * that continues it (specs/checkpoint.md, Names). HDF5's time for a link grows faster than with the
 * square of the links in its group, if they are in the header (put_links). */
static hid_t roomy_group(vn_scribe_file *f)
{
	const hid_t last = f->more >= 0 ? f->more : f->step;
	H5G_info_t  info;
	char        name[32];

	if (H5Gget_info(last, &info) < 0)
		return H5I_INVALID_HID;
	if ((int64_t)info.nlinks < f->links)
		return last;
	do /* a tensor may have that name */
		snprintf(name, sizeof name, "more.%d", ++f->n_more);
	while (H5Lexists(f->step, name, H5P_DEFAULT) > 0);
	const hid_t next = H5Gcreate2(f->step, name, H5P_DEFAULT, f->groups, H5P_DEFAULT);
	if (next >= 0 && !vn_h5_put_int(next, "continues", 1)) {
		H5Gclose(next);
		return H5I_INVALID_HID;
	}
	if (next >= 0)
		vn_h5_close(f->more);
	return next >= 0 ? (f->more = next) : next;
}

/* The group a name belongs in, created when needed and not to be closed by the caller,
 * and the name's last part. */
static hid_t parent_of(vn_scribe_file *f, const char *name, const char **last)
{
	/* Foreign names may contain dots: "model" and "model.norm" are two tensors, not a group. */
	const char *dot = vn_name_layer(name) >= 0 ? strrchr(name, '.') : NULL;
	char        path[VN_NAME_MAX];

	*last = dot ? dot + 1 : name;
	if (!dot)
		return roomy_group(f);
	memcpy(path, name, (size_t)(dot - name));
	path[dot - name] = '\0';
	for (char *p = path; *p; p++)
		if (*p == '.')
			*p = '/';
	if (f->parent >= 0 && strcmp(path, f->parent_name) == 0)
		return f->parent;
	vn_h5_close(f->parent);
	f->parent = H5Lexists(f->step, path, H5P_DEFAULT) > 0
	                ? H5Gopen2(f->step, path, H5P_DEFAULT)
	                : H5Gcreate2(f->step, path, H5P_DEFAULT, f->groups, H5P_DEFAULT);
	strcpy(f->parent_name, path);
	return f->parent;
}

/* A name of the current step; a node of vn_scribe_file.names. */
typedef struct given {
	int  more; /* 0: in the step's own groups; else in the group that continues it so far */
	char name[VN_NAME_MAX];
} given;

VN_ORDER_BY(order_by_name, given, strcmp(x->name, y->name))

static const given *find_name(const vn_scribe_file *f, const char *name)
{
	given key = { 0 };
	snprintf(key.name, sizeof key.name, "%s", name);
	given *const *at = tfind(&key, &f->names, order_by_name);
	return at ? *at : NULL;
}

/* Notes that the step has this name, in `group`. */
static bool note_name(vn_scribe_file *f, const char *name, hid_t group)
{
	given *g = malloc(offsetof(given, name) + strlen(name) + 1);

	if (!g)
		return false;
	g->more = f->more >= 0 && group == f->more ? f->n_more : 0;
	strcpy(g->name, name);
	if (tsearch(g, &f->names, order_by_name))
		return true;
	free(g);
	return false;
}

static bool put_alias(vn_scribe_file *f, const char *name, const char *of)
{
	const given *first = find_name(f, of);
	const char  *last;
	char         path[VN_NAME_MAX + 32];
	int          n = first && first->more ? snprintf(path, sizeof path, "more.%d/", first->more) : 0;

	if (find_name(f, name))
		return true;
	snprintf(path + n, sizeof path - (size_t)n, "%s", of);
	for (char *p = path + n; *p && vn_name_layer(of) >= 0; p++)
		if (*p == '.')
			*p = '/';
	hid_t parent = parent_of(f, name, &last);
	return parent >= 0 && H5Lcreate_hard(f->step, path, parent, last, H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
	       note_name(f, name, parent);
}

/* Message: the number of aliases, then for each the second name and the first. */
static vn_status write_aliases(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	const int64_t n = vn_take_int(m);
	bool          good = true;
	for (int64_t i = 0; good && i < n; i++) {
		const char *name = vn_take_text(m), *of = vn_take_text(m);
		good = !m->bad && put_alias(f, name, of);
	}
	return vn_scribe_file_settle(f, good, "second names", false, err);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Drops the current tensor. A dataset without a name disappears from the file. */
static void drop_tensor(vn_scribe_file *f)
{
	vn_h5_close(f->dset);
	f->dset = H5I_INVALID_HID;
}

static vn_status not_made(const vn_scribe_file *f, const char *name, vn_error *err)
{
	return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot make %s", f->path, name);
}

/* NULL: the message is not a tensor. */
static const vn_scribe_tensor *take_tensor(vn_message *m)
{
	size_t      bytes;
	const void *t = vn_take_bytes(m, &bytes);
	return bytes == sizeof(vn_scribe_tensor) ? t : NULL;
}

/* The dtype's encoding in a header; *bytes: its size. NULL: HDF5 cannot make it. */
static const unsigned char *encoded_type(vn_dtype dtype, size_t *bytes)
{
	static struct {
		unsigned char version[2], type[VN_TYPE_BYTES];
		size_t        n;
	} made[VN_N_DTYPES];

	if (!made[dtype].n) {
		const hid_t type = vn_h5_type(dtype, false);
		size_t      n = sizeof made->version + sizeof made->type;
		if (type >= 0 && H5Tencode(type, made[dtype].version, &n) >= 0)
			made[dtype].n = n;
		vn_h5_close(type);
	}
	*bytes = made[dtype].n - sizeof made->version;
	return made[dtype].n ? made[dtype].type : NULL;
}

/* Creates an unnamed dataset with storage allocated now and not filled. */
static bool create_dataset(vn_scribe_file *f, const vn_scribe_tensor *t)
{
	hsize_t dim[VN_MAX_RANK] = { 0 };

	for (int i = 0; i < t->shape.rank; i++)
		dim[i] = (hsize_t)t->shape.dim[i];
	hid_t space = t->shape.rank ? H5Screate_simple(t->shape.rank, dim, NULL) : H5Screate(H5S_SCALAR);
	hid_t type = vn_h5_type(t->dtype, false);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
	bool  good = space >= 0 && type >= 0 && dcpl >= 0 && H5Pset_layout(dcpl, H5D_CONTIGUOUS) >= 0 &&
	            H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY) >= 0 &&
	            H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) >= 0 && H5Pset_obj_track_times(dcpl, false) >= 0 &&
	            H5Pset_attr_phase_change(dcpl, 64, 0) >= 0 &&
	            (f->dset = H5Dcreate_anon(f->file, type, space, dcpl, H5P_DEFAULT)) >= 0;
	if (good && vn_shape_count(&t->shape) > 0) {
		const haddr_t offset = H5Dget_offset(f->dset);
		good = offset != HADDR_UNDEF;
		f->at = (int64_t)offset;
	}
	vn_h5_close(dcpl);
	vn_h5_close(type);
	vn_h5_close(space);
	return good;
}

static size_t bytes_of(const vn_scribe_tensor *t)
{
	return (size_t)vn_shape_count(&t->shape) * vn_dtype_size(t->dtype);
}

/* Begins a tensor. t may be NULL, which is refused. Sets f->at, the place of its numbers, if there
 * are any. numbers: to be written; NULL: the store does. */
static vn_status begin_tensor(vn_scribe_file *f, const vn_scribe_tensor *t, const void *numbers, vn_error *err)
{
	drop_tensor(f);
	f->at = 0;
	if (!t || t->shape.rank < 0 || t->shape.rank > VN_MAX_RANK || (int)t->dtype < 0 || t->dtype >= VN_N_DTYPES)
		return vn_fail(err, VN_ERR_USAGE, "%s: a tensor without a name, or of no known format or rank", f->path);
	if (f->bulk) {
		f->at = numbers ? vn_bulk_numbers(f->bulk, numbers, bytes_of(t)) : vn_bulk_place(f->bulk, bytes_of(t));
		return VN_OK;
	}
	if (!create_dataset(f, t))
		return not_made(f, t->label.name, err);
	return numbers ? vn_write_at((vn_open_file) { f->fd, f->path }, t->label.name, numbers, bytes_of(t), f->at, err)
	               : VN_OK;
}

/* Message: a tensor. Answer: offset of its numbers. */
static vn_status start_tensor(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	const vn_status st = begin_tensor(f, take_tensor(m), NULL, err);
	*f->answer = f->at;
	return st;
}

static bool put_int(vn_scribe_file *f, const char *key, int64_t x)
{
	if (f->bulk)
		vn_bulk_put_int(f->bulk, key, x);
	return f->bulk || vn_h5_put_int(f->dset, key, x);
}

static bool put_real(vn_scribe_file *f, const char *key, double x)
{
	if (f->bulk)
		vn_bulk_put_real(f->bulk, key, x);
	return f->bulk || vn_h5_put_real(f->dset, key, x);
}

static bool put_word(vn_scribe_file *f, const char *key, const char *word)
{
	if (f->bulk && *word)
		vn_bulk_put_text(f->bulk, key, word);
	return f->bulk || !*word || vn_h5_put_text(f->dset, key, word);
}

static bool put_attributes(vn_scribe_file *f, const vn_scribe_tensor *t)
{
	const vn_tensor_label *l = &t->label;
	const vn_stats        *s = &t->stats;

	return (l->order < 0 || put_int(f, "order", l->order)) && put_int(f, "layer", l->layer) &&
	       put_word(f, "point", l->point) && put_word(f, "op", l->op) && put_word(f, "basis", l->basis) &&
	       put_word(f, "axes", l->axes) && put_word(f, "digest", t->digest.hex) && put_real(f, "min", s->min) &&
	       put_real(f, "max", s->max) && put_real(f, "mean", s->mean) && put_real(f, "rms", s->rms) &&
	       put_real(f, "absmax", s->absmax) && put_int(f, "nan", s->nan) && put_int(f, "inf", s->inf) &&
	       put_word(f, "source_line", l->source_line) &&
	       (!vn_h5_says_dtype(t->dtype) || put_word(f, "dtype", vn_dtype_name(t->dtype)));
}

/* The same for f->bulk. */
static vn_status describe_in_bulk(vn_scribe_file *f, const vn_scribe_tensor *t, vn_error *err)
{
	size_t               bytes;
	const unsigned char *type = encoded_type(t->dtype, &bytes);

	if (!type)
		return not_made(f, t->label.name, err);
	vn_bulk_begin_dataset(f->bulk, &t->shape, type, bytes, f->at, bytes_of(t));
	put_attributes(f, t);
	return vn_scribe_whole_tensor(f, t->label.name, err);
}

/* Gives the current dataset its attributes and its name. */
static vn_status name_dataset(vn_scribe_file *f, const vn_scribe_tensor *t, vn_error *err)
{
	const char *name = t->label.name, *last;
	if (f->dset < 0 || !put_attributes(f, t))
		return not_made(f, name, err);
	if (find_name(f, name))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s is given twice in one step", f->path, name);
	const hid_t parent = parent_of(f, name, &last);
	if (parent < 0 || H5Olink(f->dset, parent, last, H5P_DEFAULT, H5P_DEFAULT) < 0 || !note_name(f, name, parent))
		return not_made(f, name, err);
	drop_tensor(f);
	return vn_scribe_file_settle(f, true, name, false, err);
}

/* Ends the current tensor. t may be NULL, which is refused. */
static vn_status end_tensor(vn_scribe_file *f, const vn_scribe_tensor *t, vn_error *err)
{
	const vn_status st = !t        ? not_made(f, "a tensor", err)
	                     : f->bulk ? describe_in_bulk(f, t, err)
	                               : name_dataset(f, t, err);
	if (st)
		return st;
	f->tensors++;
	++*f->answer;
	return VN_OK;
}

/* Message: a tensor. Answer: 1 if the file has it. */
static vn_status finish_tensor(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	return end_tensor(f, take_tensor(m), err);
}

/* Message: tensors, each with its numbers. Answer: how many of them the file has. */
static vn_status write_small_tensors(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	vn_status st = VN_OK;

	while (!st && m->at < m->n) {
		const vn_scribe_tensor *t = take_tensor(m);
		size_t                  bytes;
		const void             *numbers = vn_take_bytes(m, &bytes);

		if (m->bad || !t || bytes != bytes_of(t))
			return vn_fail(err, VN_ERR_USAGE, "%s: a tensor without a name, or its numbers", f->path);
		if (!(st = begin_tensor(f, t, numbers, err)))
			st = end_tensor(f, t, err);
	}
	return st;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool mark_complete(hid_t file)
{
	const int64_t one = 1;
	hid_t         a = H5Aopen(file, "complete", H5P_DEFAULT);
	bool          good = a >= 0 && H5Awrite(a, H5T_NATIVE_INT64, &one) >= 0;
	good &= vn_h5_close(a);
	return good;
}

/* Opens the file on disk as a reader would; HDF5 takes it for another file. */
static vn_status read_back(vn_scribe_file *f, vn_error *err)
{
	const off_t bytes = lseek(f->fd, 0, SEEK_END);
	vn_driver  *driver = bytes >= 0 ? vn_driver_create(f->fd, f->path, bytes) : NULL;
	hid_t       fapl = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
	bool        good = driver && fapl >= 0 && H5Pset_driver(fapl, (hid_t)vn_driver_id(), vn_driver_info(driver)) >= 0 &&
	            (file = H5Fopen(f->path, H5F_ACC_RDONLY, fapl)) >= 0 && vn_scribe_file_plan_is_whole(f, file);

	if (file >= 0)
		H5Fclose(file);
	vn_h5_close(fapl);
	vn_driver_destroy(driver);
	return good ? VN_OK
	            : vn_fail(err, VN_ERR_IO, "%s: does not read back as it was written; it is not renamed", f->path);
}

/* Message: 1 to mark the file complete, else 0. Answer: the tensors that the file on disk has.
 * Writes everything to disk and closes HDF5; without 1 the mark stays 0. If HDF5 has failed before,
 * the file stays as it was last published, because HDF5 would write half-made objects. */
static vn_status close_file(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	const bool complete = vn_take_int(m) && !f->refused;
	vn_status  st = VN_OK;

	*f->answer = f->on_disk;
	if (f->broken)
		return VN_OK;
	drop_tensor(f);
	close_step(f);
	if (f->file >= 0) {
		st = f->bulk ? vn_scribe_whole_end(f, err) : VN_OK;
		vn_driver_release(f->driver);
		/* Sets the mark after everything else is on disk. */
		st = st ? st : vn_scribe_file_publish(f, err);
		if (!st && complete)
			st = read_back(f, err);
		if (!st && complete && !mark_complete(f->file))
			st = vn_scribe_file_failed(f, "the mark that it is complete", err);
		if (H5Fclose(f->file) < 0 && !st)
			st = vn_scribe_file_failed(f, "its end", err);
		st = st ? st : vn_driver_publish(f->driver, err);
	}
	*f->answer = f->on_disk;
	f->file = H5I_INVALID_HID;
	f->changed = false;
	return st;
}

/* ---- the requests ---------------------------------------------------------------------------- */

vn_scribe_file *vn_scribe_file_create(int fd, const char *path)
{
	vn_scribe_file *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	*f = (vn_scribe_file) { .fd = fd,
		                    .path = path,
		                    .file = H5I_INVALID_HID,
		                    .step = H5I_INVALID_HID,
		                    .groups = H5I_INVALID_HID,
		                    .dset = H5I_INVALID_HID,
		                    .parent = H5I_INVALID_HID,
		                    .more = H5I_INVALID_HID,
		                    .driver = vn_driver_create(fd, path, 0),
		                    .mark = vn_trouble_mark() };
	if (!f->driver) {
		free(f);
		return NULL;
	}
	vn_h5_lock(); /* for what HDF5 sets once; there are no other threads */
	return f;
}

vn_status vn_scribe_file_do(vn_scribe_file *f, vn_scribe_request request, vn_message *m, int64_t *value, vn_error *err)
{
	/* clang-format off */
	static vn_status (*const execute[])(vn_scribe_file *f, vn_message *m, vn_error *err) = {
		[VN_SCRIBE_CREATE] = create_file, [VN_SCRIBE_RUN] = vn_scribe_file_run,
		[VN_SCRIBE_IDS_DIGEST] = vn_scribe_file_ids_digest, [VN_SCRIBE_TEXTS] = vn_scribe_file_texts,
		[VN_SCRIBE_FACTS] = vn_scribe_file_facts, [VN_SCRIBE_MODEL] = vn_scribe_file_model,
		[VN_SCRIBE_STEP] = begin_step, [VN_SCRIBE_ALIASES] = write_aliases, [VN_SCRIBE_START] = start_tensor,
		[VN_SCRIBE_FINISH] = finish_tensor, [VN_SCRIBE_SMALL] = write_small_tensors, [VN_SCRIBE_CLOSE] = close_file,
	};
	/* clang-format on */
	const vn_status poor = f->refused ? VN_OK : vn_h5_room(f->path, err);

	f->refused |= poor != VN_OK;
	f->answer = value;
	if (f->late) { /* broken, too: nothing more is written */
		const vn_status late = f->late;
		f->late = VN_OK;
		*value = request == VN_SCRIBE_CLOSE ? f->on_disk : 0;
		*err = f->late_err;
		return late;
	}
	/* After a refusal, close still runs, with the memory that vn_h5_room reserved for it. */
	if (poor && request == VN_SCRIBE_CLOSE)
		close_file(f, m, NULL);
	if (poor)
		return poor;
	vn_status st = execute[request](f, m, err);
	if (!st && !(f->broken && request == VN_SCRIBE_CLOSE)) /* the failure that broke it was already reported */
		st = vn_trouble_since(f->mark, f->path, err);
	f->broken |= st == VN_ERR_IO || st == VN_ERR_NOMEM;
	return st;
}
