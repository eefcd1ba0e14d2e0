/* scribe_about.c: how the scribe writes /run, /model and /plan. See scribe.h. */
#include "capture/store/scribe_internal.h"

#include "libref/base/facts.h"
#include "libref/base/progress.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds between two states on disk, which bounds the loss of a killed process besides the current
 * tensor; without requests, the scribe's socket keeps this time. Publishing takes well under a
 * millisecond, or a few with thousands of steps. */
static const double PUBLISH_EVERY = VN_SCRIBE_SILENCE_MS / 1000.0;

vn_status vn_scribe_file_failed(const vn_scribe_file *f, const char *what, vn_error *err)
{
	return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot write %s", f->path, what);
}

vn_status vn_scribe_file_publish(vn_scribe_file *f, vn_error *err)
{
	if (H5Fflush(f->file, H5F_SCOPE_GLOBAL) < 0)
		return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot flush it", f->path);
	f->published = vn_seconds();
	const vn_status st = vn_driver_publish(f->driver, err);
	if (!st) {
		f->on_disk = f->tensors;
		f->changed = false;
	}
	return st;
}

void vn_scribe_file_idle(vn_scribe_file *f)
{
	/* The header of a dataset without a name would change on disk in several places. */
	if (!f->changed || f->broken || f->refused || f->dset >= 0 || vn_h5_room(f->path, NULL))
		return;
	f->late = vn_scribe_file_publish(f, &f->late_err);
	f->broken = f->late != VN_OK;
}

vn_status vn_scribe_file_settle(vn_scribe_file *f, bool good, const char *what, bool at_once, vn_error *err)
{
	if (!good)
		return vn_scribe_file_failed(f, what, err);
	f->changed = true;
	return at_once || vn_seconds() - f->published > PUBLISH_EVERY ? vn_scribe_file_publish(f, err) : VN_OK;
}

/* What a one-dimensional dataset holds: n elements, their types. digest NULL: none. */
typedef struct list_data {
	hid_t       disk, memory;
	int64_t     n;
	int64_t     rows; /* of n / rows elements each; 0: one axis */
	const void *data;
	const char *digest;
} list_data;

static bool put_list(hid_t group, const char *name, const list_data *l)
{
	hsize_t dim[2] = { (hsize_t)(l->rows ? l->rows : l->n), (hsize_t)(l->rows ? l->n / l->rows : 0) };
	hid_t   space = H5Screate_simple(l->rows ? 2 : 1, dim, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hid_t   dset = H5I_INVALID_HID;
	bool    good = space >= 0 && dcpl >= 0 && H5Pset_obj_track_times(dcpl, false) >= 0 &&
	            (dset = H5Dcreate2(group, name, l->disk, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0 &&
	            (l->n == 0 || H5Dwrite(dset, l->memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, l->data) >= 0) &&
	            (!l->digest || vn_h5_put_text(dset, "digest", l->digest));
	good &= vn_h5_close(dset);
	vn_h5_close(dcpl);
	vn_h5_close(space);
	return good;
}

static bool put_lines(hid_t group, const char *name, char *const *line, int64_t n, const char *digest)
{
	hid_t type = vn_h5_text_type();
	bool  good = type >= 0 && put_list(group, name, &(list_data) { type, type, n, 0, line, digest });
	vn_h5_close(type);
	return good;
}

/* ---- /run ---------------------------------------------------------------------- */

/* Message: bytes of int32, and their digest or NULL. */
static bool put_ids(hid_t group, const char *name, int64_t rows, vn_message *m)
{
	size_t      bytes;
	const void *list = vn_take_bytes(m, &bytes);
	const char *digest = vn_take_text(m);
	return !m->bad &&
	       put_list(group, name,
	                &(list_data) { H5T_STD_I32LE, H5T_NATIVE_INT32, (int64_t)(bytes / 4), rows, list, digest });
}

/* Message: a vn_facts. Replaces facts that exist already. */
static bool put_facts(hid_t g, vn_message *m, bool replace)
{
	size_t          bytes;
	const vn_facts *facts = vn_take_bytes(m, &bytes);
	bool            good = bytes == sizeof *facts;

	for (int i = 0; good && i < facts->n; i++) {
		const char  *key = facts->fact[i].key;
		const htri_t there = replace ? H5Aexists(g, key) : 0;
		good = there >= 0 && (!there || H5Adelete(g, key) >= 0) && vn_h5_put_text(g, key, facts->fact[i].value);
	}
	return good;
}

/* Keeps the old /run in the file without a name. If HDF5 reused its space, it would overwrite a
 * block that links on disk still refer to. */
static bool retire_run(hid_t file)
{
	hid_t old = H5Oopen(file, "run", H5P_DEFAULT);
	bool  good = old >= 0 && H5Oincr_refcount(old) >= 0;
	good &= vn_h5_close(old);
	return good && H5Ldelete(file, "run", H5P_DEFAULT) >= 0;
}

/* Links an unnamed group as /run in place of the old one, which changes one block of links. */
static bool put_run(vn_scribe_file *f, hid_t g)
{
	const htri_t there = H5Lexists(f->file, "run", H5P_DEFAULT);
	return there >= 0 && (!there || retire_run(f->file)) && H5Olink(g, f->file, "run", H5P_DEFAULT, H5P_DEFAULT) >= 0;
}

/* Message: facts; number of prompts of a batch, or 0; token ids and positions (put_ids).
 * Answer: offset of the ids in the file. A second call replaces everything. */
vn_status vn_scribe_file_run(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	hid_t         g = H5Gcreate_anon(f->file, f->groups, H5P_DEFAULT), ids = H5I_INVALID_HID;
	bool          good = g >= 0 && put_facts(g, m, false);
	const int64_t rows = good ? vn_take_int(m) : 0;
	good = good && put_ids(g, "token_ids", rows, m) && put_ids(g, "positions", rows, m) &&
	       (ids = H5Dopen2(g, "token_ids", H5P_DEFAULT)) >= 0;

	/* An empty list has no storage. */
	const haddr_t at = good ? H5Dget_offset(ids) : HADDR_UNDEF;
	*f->answer = at == HADDR_UNDEF ? -1 : (int64_t)at;
	vn_h5_close(ids);
	good = good && put_run(f, g);
	return vn_scribe_file_settle(f, vn_h5_close(g) && good, "/run", true, err);
}

/* A text. */
vn_status vn_scribe_file_ids_digest(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	const char *hex = vn_take_text(m);
	hid_t       o = H5Dopen2(f->file, "run/token_ids", H5P_DEFAULT);
	bool        good = o >= 0 && hex && vn_h5_put_text(o, "digest", hex);
	vn_h5_close(o);
	return vn_scribe_file_settle(f, good, "/run/token_ids", true, err);
}

/* Message: the name of a dataset of /run, its texts, and their digest or NULL. */
vn_status vn_scribe_file_texts(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	const char *name = vn_take_text(m);
	int64_t     n;
	char      **text = vn_take_texts(m, &n), object[VN_NAME_MAX];
	const char *digest = vn_take_text(m);
	hid_t       g = H5Gopen2(f->file, "run", H5P_DEFAULT);
	bool        good = !m->bad && g >= 0 && put_lines(g, name, text, n, digest);

	free(text);
	snprintf(object, sizeof object, "/run/%s", name);
	return vn_scribe_file_settle(f, vn_h5_close(g) && good, object, true, err);
}

/* Message: facts. */
vn_status vn_scribe_file_facts(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	hid_t g = H5Gopen2(f->file, "run", H5P_DEFAULT);
	bool  good = g >= 0 && put_facts(g, m, true);
	return vn_scribe_file_settle(f, vn_h5_close(g) && good, "/run", true, err);
}

/* ---- /model ------------------------------------------------------------------------ */

static hid_t weight_type(void)
{
	typedef vn_scribe_weight stored_row;
	static const struct {
		const char *name;
		size_t      at;
		size_t      text;
		int         real;
	} field[] = {
		{ "name", offsetof(stored_row, name), VN_NAME_MAX, 0 },
		{ "dtype", offsetof(stored_row, dtype), 8, 0 },
		{ "shape", offsetof(stored_row, shape), VN_WEIGHT_SHAPE_TEXT, 0 },
		{ "digest", offsetof(stored_row, digest), VN_DIGEST_TEXT, 0 },
		{ "min", offsetof(stored_row, min), 0, 1 },
		{ "max", offsetof(stored_row, max), 0, 1 },
		{ "mean", offsetof(stored_row, mean), 0, 1 },
		{ "rms", offsetof(stored_row, rms), 0, 1 },
		{ "nan", offsetof(stored_row, nan), 0, 0 },
		{ "inf", offsetof(stored_row, inf), 0, 0 },
	};
	hid_t t = H5Tcreate(H5T_COMPOUND, sizeof(stored_row)), text = H5Tcopy(H5T_C_S1);
	bool  good = t >= 0 && text >= 0 && H5Tset_cset(text, H5T_CSET_UTF8) >= 0;

	for (size_t i = 0; good && i < sizeof field / sizeof *field; i++)
		good = (!field[i].text || H5Tset_size(text, field[i].text) >= 0) &&
		       H5Tinsert(t, field[i].name, field[i].at,
		                 field[i].text   ? text
		                 : field[i].real ? H5T_NATIVE_DOUBLE
		                                 : H5T_NATIVE_INT64) >= 0;
	vn_h5_close(text);
	if (!good)
		vn_h5_close(t);
	return good ? t : H5I_INVALID_HID;
}

static bool put_weights(hid_t group, vn_message *m)
{
	size_t          bytes;
	const void     *rows = vn_take_bytes(m, &bytes);
	hid_t           type = weight_type();
	const vn_digest digest = vn_digest_of(rows, bytes);
	const list_data list = { type, type, (int64_t)(bytes / sizeof(vn_scribe_weight)), 0, rows, digest.hex };
	bool            good = !m->bad && type >= 0 && put_list(group, "weights", &list);
	vn_h5_close(type);
	return good;
}

/* Message: five texts, some of them NULL; whether there are rows, then the rows. */
static bool put_model(vn_scribe_file *f, vn_message *m)
{
	static const char *const key[] = { "family", "config", "provenance", "format", "path" };
	hid_t                    g = H5Gcreate2(f->file, "model", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	bool                     good = g >= 0;

	for (size_t i = 0; good && i < sizeof key / sizeof *key; i++) {
		const char *text = vn_take_text(m);
		good = !text || vn_h5_put_text(g, key[i], text);
	}
	good = good && (!vn_take_int(m) || put_weights(g, m));
	return vn_h5_close(g) && good;
}

/* ---- /plan -------------------------------------------------------------------------- */

static const char *const number_name[] = { "layers", "vocab", "context" }, *const table_name[] = { "nodes", "values",
	                                                                                               "weights" };
enum { NUMBERS = sizeof number_name / sizeof *number_name, TABLES = sizeof table_name / sizeof *table_name };

static void add_lines(vn_digester *digest, char *const *line, int64_t n)
{
	vn_digester_add(digest, &n, sizeof n);
	for (int64_t i = 0; i < n; i++)
		vn_digester_add(digest, line[i] ? line[i] : "", line[i] ? strlen(line[i]) + 1 : 0);
}

static bool put_table(hid_t g, const char *name, vn_message *m, vn_digester *digest)
{
	int64_t         n;
	VN_FREED char **line = vn_take_texts(m, &n);
	bool            good = !m->bad && put_lines(g, name, line, n, NULL);

	if (good)
		add_lines(digest, line, n);
	return good;
}

/* Message: three numbers, then the lines of the three tables. */
static bool put_plan(vn_scribe_file *f, vn_message *m)
{
	vn_digester *digest = vn_digester_create();
	hid_t        g = H5Gcreate2(f->file, "plan", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	bool         good = digest && g >= 0;

	for (int i = 0; good && i < NUMBERS; i++) {
		const int64_t x = vn_take_int(m);
		vn_digester_add(digest, &x, sizeof x);
		good = vn_h5_put_int(g, number_name[i], x);
	}
	for (int i = 0; good && i < TABLES; i++)
		good = put_table(g, table_name[i], m, digest);
	if (digest)
		f->plan = vn_digester_finish(digest);
	return vn_h5_close(g) && good;
}

/* Message: that of put_model, whether there is a plan, then that of put_plan. */
vn_status vn_scribe_file_model(vn_scribe_file *f, vn_message *m, vn_error *err)
{
	const bool good = put_model(f, m) && (!vn_take_int(m) || put_plan(f, m)) && !m->bad;
	return vn_scribe_file_settle(f, good, "/model or /plan", true, err);
}

/* ---- the plan, read back --------------------------------------------------------------- */

static bool read_number(hid_t g, const char *name, vn_digester *digest)
{
	int64_t x = 0;
	hid_t   a = H5Aopen(g, name, H5P_DEFAULT);
	bool    good = a >= 0 && H5Aread(a, H5T_NATIVE_INT64, &x) >= 0;

	vn_digester_add(digest, &x, sizeof x);
	vn_h5_close(a);
	return good;
}

static bool read_table(hid_t g, const char *name, vn_digester *digest)
{
	hid_t           dset = H5Dopen2(g, name, H5P_DEFAULT), type = vn_h5_text_type();
	hid_t           space = dset >= 0 ? H5Dget_space(dset) : H5I_INVALID_HID;
	const hssize_t  n = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
	VN_FREED char **line = n >= 0 ? calloc((size_t)n + 1, sizeof *line) : NULL;
	bool good = line && type >= 0 && (n == 0 || H5Dread(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, line) >= 0);

	if (good)
		add_lines(digest, line, n);
	if (good && n)
		H5Dvlen_reclaim(type, space, H5P_DEFAULT, line);
	vn_h5_close(space);
	vn_h5_close(type);
	vn_h5_close(dset);
	return good;
}

bool vn_scribe_file_plan_is_whole(const vn_scribe_file *f, hid_t file)
{
	if (!*f->plan.hex)
		return true;
	vn_digester *digest = vn_digester_create();
	hid_t        g = H5Gopen2(file, "plan", H5P_DEFAULT);
	bool         good = digest && g >= 0;

	for (int i = 0; good && i < NUMBERS; i++)
		good = read_number(g, number_name[i], digest);
	for (int i = 0; good && i < TABLES; i++)
		good = read_table(g, table_name[i], digest);
	const vn_digest is = digest ? vn_digester_finish(digest) : (vn_digest) { "" };
	return vn_h5_close(g) && good && strcmp(is.hex, f->plan.hex) == 0;
}
