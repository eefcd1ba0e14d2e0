/* edit.c: see edit.h. What is beside the tensors: attributes, links, lists, tables. */
#include "capture/edit/edit_internal.h"

#include "capture/file/child.h"
#include "capture/file/driver.h"
#include "capture/recording/scan.h"
#include "libref/base/digest.h"
#include "libref/base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in a child ------------------------------------------------------------ */

typedef struct edit_job {
	const char *path;
	int         fd;
	int64_t     bytes;
	void (*change)(vn_edit *e, void *ctx);
	void *ctx;
} edit_job;

void vn_edit_fail(vn_edit *e, const char *object, const char *why)
{
	if (!e->failed)
		vn_fail(&e->err, VN_ERR_FORMAT, "%s: %s: %s", e->path, object, why);
	e->failed = true;
}

void vn_edit_settle(vn_edit *e, bool good, const char *object)
{
	if (!good)
		vn_edit_fail(e, object, "HDF5 cannot change it");
}

/* Flips a byte, which no HDF5 call would do. */
static bool flip_byte(int fd, int64_t at)
{
	unsigned char byte = 0;
	const bool    read = pread(fd, &byte, 1, at) == 1;

	byte ^= 0x55;
	return read && pwrite(fd, &byte, 1, at) == 1;
}

static hid_t open_to_change(const edit_job *j)
{
	vn_driver  *d = vn_driver_create(j->fd, j->path, j->bytes);
	const hid_t how = H5Pcreate(H5P_FILE_ACCESS);

	if (!d || how < 0)
		return H5I_INVALID_HID;
	vn_driver_pass(d);
	/* Closing the file closes every object opened in it. */
	return H5Pset_fclose_degree(how, H5F_CLOSE_STRONG) >= 0 &&
	               H5Pset_driver(how, (hid_t)vn_driver_id(), vn_driver_info(d)) >= 0
	           ? H5Fopen(j->path, H5F_ACC_RDWR, how)
	           : H5I_INVALID_HID;
}

static void edit_in_child(void *ctx, int pipe)
{
	const edit_job *j = ctx;
	vn_edit         e = { .path = j->path, .file = H5I_INVALID_HID };
	char            frame[sizeof(int32_t) + VN_ERROR_MAX] = { 0 };

	vn_child_patience(600); /* it may have gigabytes to write */
	vn_h5_lock();
	if ((e.file = open_to_change(j)) < 0)
		vn_edit_fail(&e, "/", "it does not open for writing");
	else
		j->change(&e, j->ctx);
	if (e.file >= 0)
		vn_edit_settle(&e, H5Fclose(e.file) >= 0, "/");
	if (e.rot)
		vn_edit_settle(&e, flip_byte(j->fd, e.rot), "/");
	vn_h5_unlock();
	memcpy(frame + sizeof(int32_t), e.err.text, strlen(e.err.text));
	vn_child_send(pipe, e.failed ? VN_FRAME_FAILED : VN_FRAME_DONE, frame, sizeof(int32_t) + strlen(e.err.text));
}

vn_status vn_edit_file(const char *path, void (*change)(vn_edit *e, void *ctx), void *ctx, vn_error *err)
{
	edit_job    j = { .path = path, .fd = vn_plain_open(path, O_RDWR), .change = change, .ctx = ctx };
	vn_child    child;
	int         kind = -1;
	void       *data = NULL;
	size_t      bytes = 0;
	struct stat s;

	if (j.fd < 0 || fstat(j.fd, &s) != 0) {
		const vn_status st = vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
		if (j.fd >= 0)
			close(j.fd);
		return st;
	}
	j.bytes = s.st_size;
	vn_status st = vn_child_start(
		&child,
		&(vn_child_task) { .path = path, .file = j.fd, .writes = true, .slow = true, .work = edit_in_child, .ctx = &j },
		err);
	if (!st && !(st = vn_child_receive(&child, &kind, &data, &bytes, err)) && kind != VN_FRAME_DONE)
		st = vn_child_refused(path, data, bytes, err);
	free(data);
	vn_child_end(&child);
	close(j.fd);
	return st;
}

char *vn_edit_path(int step, const char *name, char *path)
{
	int n = snprintf(path, VN_EDIT_PATH, "/step.%d/%s", step, name);
	for (int i = (int)strlen("/step."); i < n && i < VN_EDIT_PATH; i++)
		if (path[i] == '.')
			path[i] = '/';
	return path;
}

/* ---- attributes -------------------------------------------------------------- */

static hid_t open_any(vn_edit *e, const char *object)
{
	hid_t o = e->failed ? H5I_INVALID_HID : H5Oopen(e->file, object, H5P_DEFAULT);
	if (o < 0)
		vn_edit_fail(e, object, "it cannot be opened");
	return o;
}

void vn_edit_text(vn_edit *e, const char *object, const char *key, const char *text)
{
	hid_t o = open_any(e, object);

	if (o < 0)
		return;
	bool good = H5Aexists(o, key) <= 0 || H5Adelete(o, key) >= 0;
	vn_edit_settle(e, good && (!text || vn_h5_put_text(o, key, text)), object);
	H5Oclose(o);
}

void vn_edit_whole(vn_edit *e, const char *object, const char *key, int64_t value)
{
	hid_t o = open_any(e, object);

	if (o < 0)
		return;
	bool good = H5Aexists(o, key) <= 0 || H5Adelete(o, key) >= 0;
	vn_edit_settle(e, good && vn_h5_put_int(o, key, value), object);
	H5Oclose(o);
}

/* ---- links --------------------------------------------------------------------- */

void vn_edit_unlink(vn_edit *e, const char *object)
{
	if (!e->failed)
		vn_edit_settle(e, H5Ldelete(e->file, object, H5P_DEFAULT) >= 0, object);
}

void vn_edit_move(vn_edit *e, const char *from, const char *to)
{
	if (e->failed)
		return;
	hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);
	vn_edit_settle(e,
	               lcpl >= 0 && H5Pset_create_intermediate_group(lcpl, 1) >= 0 &&
	                   H5Lmove(e->file, from, e->file, to, lcpl, H5P_DEFAULT) >= 0,
	               from);
	H5Pclose(lcpl);
}

void vn_edit_swap(vn_edit *e, const char *a, const char *b)
{
	vn_edit_move(e, a, "/aside");
	vn_edit_move(e, b, a);
	vn_edit_move(e, "/aside", b);
}

void vn_edit_point(vn_edit *e, const char *name, vn_edit_link kind, const char *target)
{
	if (e->failed)
		return;
	bool good = H5Lexists(e->file, name, H5P_DEFAULT) <= 0 || H5Ldelete(e->file, name, H5P_DEFAULT) >= 0;
	if (kind == VN_EDIT_HARD)
		good = good && H5Lcreate_hard(e->file, target, e->file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
	else if (kind == VN_EDIT_SOFT)
		good = good && H5Lcreate_soft(target, e->file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
	else
		good = good && H5Lcreate_external(target, name, e->file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
	vn_edit_settle(e, good, name);
}

/* ---- lists and tables ------------------------------------------------------------- */

void vn_edit_ids(vn_edit *e, const char *object, const int32_t *id, int64_t n, bool honest)
{
	const vn_digest d = vn_digest_of(id, (size_t)n * sizeof *id);
	hsize_t         dim = (hsize_t)n;

	if (e->failed)
		return;
	hid_t old = open_any(e, object), space = H5Screate_simple(1, &dim, NULL);
	char  was[VN_DIGEST_TEXT + 1] = "";
	hid_t a = old >= 0 && H5Aexists(old, "digest") > 0 ? H5Aopen(old, "digest", H5P_DEFAULT) : H5I_INVALID_HID;
	char *text = NULL;
	hid_t type = vn_h5_text_type();
	if (a >= 0 && H5Aread(a, type, &text) >= 0 && text)
		snprintf(was, sizeof was, "%s", text);
	bool  good = H5Ldelete(e->file, object, H5P_DEFAULT) >= 0;
	hid_t o = good ? H5Dcreate2(e->file, object, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) : -1;
	vn_edit_settle(e,
	               o >= 0 && H5Dwrite(o, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, id) >= 0 &&
	                   vn_h5_put_text(o, "digest", honest ? d.hex : was),
	               object);
}

void vn_edit_line(vn_edit *e, const char *object, const char *from, const char *to)
{
	hid_t   o = open_any(e, object), type = vn_h5_text_type(), space;
	hsize_t n = 0;
	bool    found = false;

	if (o < 0 || type < 0 || (space = H5Dget_space(o)) < 0 || H5Sget_simple_extent_dims(space, &n, NULL) != 1) {
		vn_edit_fail(e, object, "it is not a list");
		return;
	}
	char **line = calloc((size_t)n + 1, sizeof *line);
	if (!line || H5Dread(o, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, line) < 0) {
		vn_edit_fail(e, object, "it is not a list of strings");
		return;
	}
	for (hsize_t i = 0; i < n && !found; i++) {
		char *at = line[i] ? strstr(line[i], from) : NULL;
		if (!at)
			continue;
		const size_t room = strlen(line[i]) + strlen(to) + 1;
		char        *other = malloc(room);
		if (!other) {
			vn_edit_fail(e, object, "no memory");
			return;
		}
		snprintf(other, room, "%.*s%s%s", (int)(at - line[i]), line[i], to, at + strlen(from));
		line[i] = other;
		found = true;
	}
	if (!found)
		vn_edit_fail(e, object, from);
	vn_edit_settle(e, H5Dwrite(o, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, line) >= 0, object);
}

static const char weights[] = "/model/weights";

/* Reads the table with all its columns in the file's layout: n rows of `width` bytes. */
static unsigned char *read_table(vn_edit *e, hid_t *o, hid_t *type, hsize_t *n, size_t *width)
{
	unsigned char *rows = NULL;
	hid_t          space = H5I_INVALID_HID;

	*o = open_any(e, weights);
	if (*o >= 0 && (*type = H5Dget_type(*o)) >= 0 && (space = H5Dget_space(*o)) >= 0 &&
	    H5Sget_simple_extent_dims(space, n, NULL) == 1 && *n > 0 && (*width = H5Tget_size(*type)) > 0)
		rows = calloc((size_t)*n, *width);
	if (!rows || H5Dread(*o, *type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) < 0) {
		vn_edit_fail(e, weights, "it is not a table");
		return NULL;
	}
	return rows;
}

/* Sets a column of a row. value: a string or a double. */
static void put_cell(vn_edit *e, int row, const char *column, H5T_class_t kind, const void *value)
{
	hid_t          o, type, its = H5I_INVALID_HID;
	hsize_t        n = 0;
	size_t         width = 0;
	unsigned char *rows = read_table(e, &o, &type, &n, &width);

	if (!rows)
		return;
	const int i = H5Tget_member_index(type, column);
	if (i < 0 || (its = H5Tget_member_type(type, (unsigned)i)) < 0 || H5Tget_class(its) != kind ||
	    H5Tis_variable_str(its) > 0 || (kind == H5T_FLOAT && H5Tget_size(its) != sizeof(double))) {
		vn_edit_fail(e, weights, column);
		return;
	}
	unsigned char *at = rows + (size_t)row * width + H5Tget_member_offset(type, (unsigned)i);
	if (kind == H5T_STRING)
		strncpy((char *)at, value, H5Tget_size(its) - 1);
	else
		memcpy(at, value, sizeof(double));
	const vn_digest d = vn_digest_of(rows, (size_t)n * width);
	vn_edit_settle(
		e,
		H5Dwrite(o, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0 &&
			(H5Aexists(o, "digest") <= 0 || (H5Adelete(o, "digest") >= 0 && vn_h5_put_text(o, "digest", d.hex))),
		weights);
}

void vn_edit_weight_text(vn_edit *e, int row, const char *column, const char *text)
{
	put_cell(e, row, column, H5T_STRING, text);
}

void vn_edit_weight_real(vn_edit *e, int row, const char *column, double value)
{
	put_cell(e, row, column, H5T_FLOAT, &value);
}

void vn_edit_weights_fewer(vn_edit *e)
{
	hid_t          o, type;
	hsize_t        n = 0;
	size_t         width = 0;
	unsigned char *rows = read_table(e, &o, &type, &n, &width);

	if (!rows)
		return;
	n--;
	hid_t space = H5Screate_simple(1, &n, NULL);
	bool  good = H5Ldelete(e->file, weights, H5P_DEFAULT) >= 0;
	o = good ? H5Dcreate2(e->file, weights, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) : -1;
	vn_edit_settle(e, o >= 0 && H5Dwrite(o, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0, weights);
}
