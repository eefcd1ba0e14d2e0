/* dump_tree.c: reads the tree that transformers' model_debugging_utils writes
 * (X_debug_tree_FULL_TENSORS.json), whose tensors are in .safetensors files next to it.
 *
 * A tensor is named after its module, without the prefix of the model's class, as name maps expect
 * (specs/names/hf.yaml). Inputs get the suffix `.in`, and one of several tensors gets `.0`, `.1`...
 */
#include "capture/import/dump.h"

#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/base/map.h"
#include "libref/model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tree {
	vn_safetensors *file; /* file of the array read last */
	char           *folder;
} tree;

enum { ROOM = 4096 };

static vn_status open_file(vn_dump *d, const char *file, const vn_source_tensor **t, vn_error *err)
{
	tree     *s = d->state;
	char      path[ROOM];
	vn_status st;
	vn_safetensors_close(s->file);
	s->file = NULL;
	if (snprintf(path, sizeof path, "%s/%s", s->folder, file) >= (int)sizeof path)
		return vn_fail(err, VN_ERR_IO, "%s: a path that is too long", d->path);
	if ((st = vn_safetensors_open(path, &s->file, err)))
		return st;
	if (!(*t = vn_safetensors_find(s->file, "data")))
		return vn_fail(err, VN_ERR_FORMAT, "%s: no tensor 'data'", path);
	return VN_OK;
}

static vn_status bytes_of(vn_dump *d, const vn_array *a, const unsigned char **data, vn_error *err)
{
	const vn_source_tensor *t = NULL;
	vn_import_layout        layout;
	vn_shape                shape;
	vn_status               st = open_file(d, a->file, &t, err);
	if (!st && (!vn_dump_safetensors_layout(t, &layout, &shape) || layout.width != a->layout.width ||
	            !vn_shape_equal(&shape, &a->shape)))
		st = vn_fail(err, VN_ERR_IO, "%s: %s changed while it was being read", d->path, a->file);
	*data = st ? NULL : t->data;
	return st;
}

static void close_tree(vn_dump *d)
{
	tree *s = d->state;
	vn_safetensors_close(s->file);
	VN_FREE(s->folder, s);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Takes the prompt from an input of the model with one row of ids. */
static vn_status take_prompt(vn_dump *d, const char *name, const vn_array *a, const unsigned char *data, vn_error *err)
{
	vn_status st;
	if (strcmp(name, "in.input_ids") != 0 || d->n_ids || a->shape.rank != 2 || a->shape.dim[0] != 1 ||
	    a->shape.dim[1] == 0 || a->layout.dtype != VN_I32)
		return VN_OK;
	VN_FREED int32_t *ids = vn_alloc((size_t)a->shape.dim[1], sizeof *ids);
	if (!(st = vn_import_layout_read(d->path, name, &a->layout, &a->shape, data, ids, err))) {
		for (int64_t i = 0; i < a->shape.dim[1] && !st; i++)
			if (ids[i] < 0)
				st = vn_fail(err, VN_ERR_FORMAT, "%s: %s: a token id is negative", d->path, name);
		if (!st && !(st = vn_dump_step(d, a->shape.dim[1], err)))
			st = vn_dump_ids(d, ids, NULL, a->shape.dim[1], err);
		d->has_steps = true;
	}
	return st;
}

static vn_status add_tensor(vn_dump *d, const char *name, const json_t *value, vn_error *err)
{
	const char             *file = json_string_value(value);
	const vn_source_tensor *t = NULL;
	vn_status               st;
	if (!file)
		return vn_fail(
			err, VN_ERR_UNSUPPORTED,
			"%s: %s: holds printed numbers; model_addition_debugger_context(..., use_repr=False) writes all of them",
			d->path, name);
	file += strncmp(file, "./", 2) == 0 ? 2 : 0;
	if (!*file || *file == '.' || strchr(file, '/') || strlen(file) > 255)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s: '%.60s' is not a file in the same folder", d->path, name, file);
	if ((st = open_file(d, file, &t, err)))
		return st;
	vn_array *a = vn_dump_add(d, d->path, name, NULL, NULL, err);
	if (!a)
		return VN_ERR_FORMAT;
	if (!vn_dump_safetensors_layout(t, &a->layout, &a->shape)) { /* boolean masks and the like are no checkpoints */
		d->n--;
		return VN_OK;
	}
	a->file = vn_alloc_text(file);
	return take_prompt(d, name, a, t->data, err);
}

/* Joins a name and a word. */
static vn_status join_name(const vn_dump *d, char *to, const char *name, const char *word, vn_error *err)
{
	if (snprintf(to, VN_NAME_MAX, "%s%s%s", name, *name && *word ? "." : "", word) < VN_NAME_MAX)
		return VN_OK;
	return vn_fail(err, VN_ERR_FORMAT, "%s: the name of a module has more than %d bytes", d->path, VN_NAME_MAX - 1);
}

/* Adds a tensor, or the tensors inside a list or dictionary. */
static vn_status add_value(vn_dump *d, const char *name, const json_t *x, vn_error *err)
{
	char        inner[VN_NAME_MAX], number[24];
	vn_status   st = VN_OK;
	const char *key;
	json_t     *value;
	size_t      i;
	if (json_is_object(x) && json_object_get(x, "shape") && json_object_get(x, "dtype")) {
		if (json_object_get(x, "value"))
			return add_tensor(d, name, json_object_get(x, "value"), err);
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: a summary without numbers: the file ..._FULL_TENSORS.json has them", d->path);
	}
	if (json_is_array(x))
		json_array_foreach(x, i, value)
		{
			snprintf(number, sizeof number, "%zu", i);
			if (st || (st = join_name(d, inner, name, number, err)) || (st = add_value(d, inner, value, err)))
				return st;
		}
	else if (json_is_object(x))
		json_object_foreach((json_t *)(uintptr_t)x, key, value) if ((st = join_name(d, inner, name, key, err)) ||
		                                                            (st = add_value(d, inner, value, err))) return st;
	return st;
}

/* Reads {"args": [...], "kwargs": {...}}; the first argument is the input. */
static vn_status add_inputs(vn_dump *d, const char *name, const json_t *inputs, vn_error *err)
{
	char      in[VN_NAME_MAX], inner[VN_NAME_MAX], number[24];
	json_t   *value;
	size_t    i;
	vn_status st = join_name(d, in, name, "in", err);
	json_array_foreach(json_object_get(inputs, "args"), i, value)
	{
		snprintf(number, sizeof number, "%zu", i);
		if (st || (st = join_name(d, inner, in, i ? number : "", err)) || (st = add_value(d, inner, value, err)))
			return st;
	}
	return st ? st : add_value(d, in, json_object_get(inputs, "kwargs"), err);
}

static vn_status add_module(vn_dump *d, const json_t *node, vn_error *err)
{
	const char *path = json_string_value(json_object_get(node, "module_path"));
	char        name[VN_NAME_MAX];
	json_t     *child;
	size_t      i;
	vn_status   st;
	if (!path)
		return vn_fail(err, VN_ERR_FORMAT, "%s: not a tree of modules: no module_path", d->path);
	const char *dot = strchr(path, '.'); /* after the model's class */
	if ((st = join_name(d, name, "", dot ? dot + 1 : "", err)) ||
	    (st = add_inputs(d, name, json_object_get(node, "inputs"), err)))
		return st;
	json_array_foreach(json_object_get(node, "children"), i, child) if ((st = add_module(d, child, err))) return st;
	return add_value(d, name, json_object_get(node, "outputs"), err);
}

vn_status vn_dump_open_tree(vn_dump *d, vn_error *err)
{
	const char  *slash = strrchr(d->path, '/');
	tree        *s = d->state = vn_alloc_zero(1, sizeof *s);
	vn_map       map;
	json_error_t why;
	s->folder = vn_alloc_check(slash ? strndup(d->path, slash == d->path ? 1 : (size_t)(slash - d->path))
	                                 : strdup("."));
	d->kind = "transformers tree";
	d->bytes = bytes_of;
	d->close = close_tree;
	vn_status st = vn_map_open(d->path, &map, err);
	if (st)
		return st;
	VN_OWNED json_t *root = vn_json_load((const char *)map.data, map.bytes, JSON_REJECT_DUPLICATES, &why);
	vn_map_close(&map);
	if (!root)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d: not JSON: %s", d->path, why.line, why.text);
	return add_module(d, root, err);
}
