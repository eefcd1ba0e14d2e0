/* dump_npy.c: reads a directory of .npy or .txt files, with the manifest of specs/dump.md or
 * without. Without one, files are named after their tensors, and those of later steps are in
 * folders step.1, step.2... */
#include "capture/import/dump.h"

#include "libref/base/alloc.h"
#include "libref/base/map.h"
#include "libref/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PATH = 4096 };

/* Maps one file at a time, because there may be more files than a process may map. */
typedef struct directory {
	vn_map map;
	void  *numbers; /* of a file of text */
} directory;

static vn_status path_of(const vn_dump *d, const char *file, char *path, vn_error *err)
{
	return snprintf(path, MOST_PATH, "%s/%s", d->path, file) < MOST_PATH
	           ? VN_OK
	           : vn_fail(err, VN_ERR_IO, "%s: a path that is too long", d->path);
}

static int ends_with(const char *name, const char *with)
{
	const size_t n = strlen(name), m = strlen(with);
	return n > m && strcmp(name + n - m, with) == 0;
}

/* Opens a file and reads its header. */
static vn_status open_file(vn_dump *d, const char *file, vn_npy *npy, vn_error *err)
{
	directory *s = d->state;
	char       path[MOST_PATH], *text;
	size_t     bytes;
	vn_status  st;

	vn_map_close(&s->map);
	s->map = (vn_map) { 0 };
	free(s->numbers);
	s->numbers = NULL;
	if ((st = path_of(d, file, path, err)))
		return st;
	if (ends_with(file, ".txt")) {
		*npy = (vn_npy) { 0 };
		if ((st = vn_read_text(path, SIZE_MAX - 1, &text, &bytes, err)))
			return st;
		st = vn_dump_text(path, text, bytes, npy, &s->numbers, err);
		free(text);
		return st;
	}
	if ((st = vn_map_open(path, &s->map, err)))
		return st;
	return vn_npy_parse(path, s->map.data, s->map.bytes, s->map.bytes, npy, err);
}

static vn_status bytes_of(vn_dump *d, const vn_array *a, const unsigned char **data, vn_error *err)
{
	directory *s = d->state;
	vn_npy     npy;
	vn_status  st = open_file(d, a->file, &npy, err);
	if (!st && (npy.at != a->at || npy.layout.width != a->layout.width || !vn_shape_equal(&npy.shape, &a->shape)))
		st = vn_fail(err, VN_ERR_IO, "%s/%s: changed while it was being read", d->path, a->file);
	*data = st ? NULL : s->numbers ? s->numbers : s->map.data + npy.at;
	return st;
}

static void close_directory(vn_dump *d)
{
	directory *s = d->state;
	vn_map_close(&s->map);
	VN_FREE(s->numbers, s);
}

/* ---- with a manifest ------------------------------------------------------------------------ */

/* Checks that the file holds what its line says. */
static vn_status look_at(vn_dump *d, vn_array *a, vn_error *err)
{
	vn_npy    npy;
	char      said[VN_SHAPE_TEXT], found[VN_SHAPE_TEXT];
	vn_status st = open_file(d, a->file, &npy, err);
	if (st)
		return st;
	if (!vn_shape_equal(&npy.shape, &a->shape))
		return vn_fail(err, VN_ERR_SHAPE, "%s/%s: has the shape %s, the manifest says %s of %s", d->path, a->file,
		               vn_shape_text(&npy.shape, found), vn_shape_text(&a->shape, said), a->name);
	if (!vn_import_layout_is(&npy.layout, a->layout.dtype))
		return vn_fail(err, VN_ERR_FORMAT, "%s/%s: is not %s, which the manifest says of %s", d->path, a->file,
		               vn_dtype_name(a->layout.dtype), a->name);
	a->layout = npy.layout;
	a->at = npy.at;
	return VN_OK;
}

/* Drops incomplete tensors of a recording that was cut off. */
static vn_status look_at_all(vn_dump *d, vn_error *err)
{
	int kept = 0;
	for (int i = 0; i < d->n; i++) {
		vn_error        why;
		const vn_status st = look_at(d, &d->array[i], &why);
		if (!st) {
			d->array[kept++] = d->array[i];
			continue;
		}
		if (d->complete) {
			if (err)
				*err = why;
			return st; /* nothing dropped so far, so kept is i */
		}
		if (d->n_left++ == 0)
			snprintf(d->left, sizeof d->left, "%s", why.text);
		VN_FREE(d->array[i].file, d->array[i].source_line);
	}
	d->n = kept;
	return VN_OK;
}

static vn_status open_manifest(vn_dump *d, const char *path, vn_error *err)
{
	vn_map    map;
	vn_status st = vn_map_open(path, &map, err);
	if (st)
		return st;
	st = vn_manifest_parse(d, path, (const char *)map.data, map.bytes, err);
	vn_map_close(&map);
	return st ? st : look_at_all(d, err);
}

/* ---- without --------------------------------------------------------------------------------- */

/* prefix: "", "step.3/", "step.3/layer0/". A folder that is no step becomes part of the
 * name: "layer0.q". */
static vn_status add_file(vn_dump *d, const char *prefix, const char *file, vn_error *err)
{
	char      whole[MOST_PATH], path[MOST_PATH], name[MOST_PATH];
	int       step;
	vn_npy    npy;
	vn_status st;
	snprintf(whole, sizeof whole, "%s%s", prefix, file);
	snprintf(name, sizeof name, "%.*s", (int)(strlen(whole) - strlen(".npy")), whole);
	if ((st = path_of(d, whole, path, err)) || (st = open_file(d, whole, &npy, err)))
		return st;
	for (char *at = name + (vn_dump_step_of(name, &step) - name); *at; at++)
		*at = *at == '/' ? '.' : *at;
	vn_array *a = vn_dump_add(d, path, vn_dump_step_of(name, &step), NULL, NULL, err);
	if (!a)
		return VN_ERR_FORMAT;
	a->step = step;
	a->layout = npy.layout;
	a->shape = npy.shape;
	a->at = npy.at;
	a->file = vn_alloc_text(whole);
	return VN_OK;
}

static int is_listed(const struct dirent *e)
{
	return *e->d_name != '.';
}

/* A name that cannot be examined may be a folder of tensors; a broken link is not. */
static vn_status look_for_folder(const vn_dump *d, const char *prefix, const char *name, bool *folder, vn_error *err)
{
	char        path[MOST_PATH];
	struct stat s;

	*folder = false;
	if (snprintf(path, sizeof path, "%s/%s%s", d->path, prefix, name) >= MOST_PATH)
		return vn_fail(err, VN_ERR_IO, "%s: a path that is too long", d->path);
	if (stat(path, &s) == 0)
		*folder = S_ISDIR(s.st_mode);
	else if (errno != ENOENT)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	return VN_OK;
}

/* Is this file a tensor? A text file is one only if it begins with numbers, because a dump's folder
 * may also hold notes. */
static bool is_tensor(const vn_dump *d, const char *prefix, const char *name)
{
	char   path[MOST_PATH], text[16] = "";
	vn_map map;

	if (!(ends_with(name, ".npy") || ends_with(name, ".txt")))
		return false;
	if (ends_with(name, ".npy"))
		return true;
	if (snprintf(path, sizeof path, "%s/%s%s", d->path, prefix, name) >= MOST_PATH || vn_map_open(path, &map, NULL))
		return true; /* errors are reported when it is read */
	const size_t n = map.bytes < sizeof text - 1 ? map.bytes : sizeof text - 1;
	if (n)
		memcpy(text, map.data, n);
	vn_map_close(&map);
	const char *word = text + strspn(text, " \t\r\n");
	return n &&
	       (strchr("#0123456789+-.", *word) || strncasecmp(word, "nan", 3) == 0 || strncasecmp(word, "inf", 3) == 0);
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return vn_text_order((*a)->d_name, (*b)->d_name);
}

/* Adds files first, then folders, so that steps come in order. */
static vn_status add_folder(vn_dump *d, const char *prefix, int depth, vn_error *err)
{
	enum { DEEPEST = 8 };
	VN_FREED struct dirent **list = NULL;
	char                     path[MOST_PATH], below[MOST_PATH];
	bool                     folder;
	vn_status                st = path_of(d, prefix, path, err);
	if (!st && depth > DEEPEST)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: folders more than %d deep", path, DEEPEST);
	const int n = st ? 0 : scandir(path, &list, is_listed, by_number);
	if (n < 0)
		st = vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	for (int i = 0; !st && i < n; i++)
		if (!(st = look_for_folder(d, prefix, list[i]->d_name, &folder, err)) && !folder &&
		    is_tensor(d, prefix, list[i]->d_name))
			st = add_file(d, prefix, list[i]->d_name, err);
	for (int i = 0; !st && i < n; i++) {
		if ((st = look_for_folder(d, prefix, list[i]->d_name, &folder, err)) || !folder)
			continue;
		if (snprintf(below, sizeof below, "%s%s/", prefix, list[i]->d_name) >= MOST_PATH)
			st = vn_fail(err, VN_ERR_IO, "%s: a path that is too long", d->path);
		else
			st = add_folder(d, below, depth + 1, err);
	}
	/* The given folder may be the parent of the actual dump. */
	for (int i = 0; !st && i < n && depth == 0 && d->n == 0; i++)
		if (ends_with(list[i]->d_name, "_FULL_TENSORS.json"))
			st = vn_fail(err, VN_ERR_USAGE, "%s: a folder of transformers' debugging tree: import %s/%s", d->path,
			             d->path, list[i]->d_name);
	for (int i = 0; i < n; i++)
		free(list[i]);
	return st;
}

vn_status vn_dump_open_directory(vn_dump *d, vn_error *err)
{
	char      path[MOST_PATH];
	bool      there;
	vn_status st = path_of(d, "manifest.jsonl", path, err);
	if (st)
		return st;
	d->state = vn_alloc_zero(1, sizeof(directory));
	d->bytes = bytes_of;
	d->close = close_directory;
	d->kind = "directory";
	if ((st = vn_file_there(path, &there, err)))
		return st;
	return there ? open_manifest(d, path, err) : add_folder(d, "", 0, err);
}
