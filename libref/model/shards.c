/* shards.c: see shards.h. */
#include "libref/model/shards.h"

#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/base/map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INDEX_MAX = 64 << 20, FILES_MAX = 4096, PATH_ROOM = 4096 };

static vn_status join_path(const char *dir, const char *name, char path[PATH_ROOM], vn_error *err)
{
	if (snprintf(path, PATH_ROOM, "%s/%s", dir, name) >= PATH_ROOM)
		return vn_fail(err, VN_ERR_USAGE, "%s: path too long", dir);
	return VN_OK;
}

static vn_status open_file(vn_shards *s, const char *path, vn_error *err)
{
	s->file = vn_alloc_grown(s->file, s->n_files, sizeof *s->file);
	vn_status st = vn_safetensors_open(path, &s->file[s->n_files], err);
	if (!st)
		s->n_files++;
	return st;
}

/* Whether a file name from an index stays inside the directory. */
static int stays_inside(const char *name)
{
	if (!*name || *name == '/')
		return 0;
	for (const char *p = name; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
			return 0;
	}
	return 1;
}

static vn_status open_listed(vn_shards *s, const char *dir, const char *index, json_t *map, vn_error *err)
{
	const char *name;
	json_t     *value;
	char        path[PATH_ROOM];
	vn_status   st;

	json_object_foreach(map, name, value)
	{
		const char *file = json_string_value(value);
		size_t      i = 0;
		if (!file)
			return vn_fail(err, VN_ERR_FORMAT, "%s: weight_map: %s: expected a file name", index, name);
		if (!stays_inside(file))
			return vn_fail(err, VN_ERR_FORMAT, "%s: weight_map: %s: '%s' is outside the model's directory", index, name,
			               file);
		while (strncmp(file, "./", 2) == 0) /* one name for each file */
			file += 2 + strspn(file + 2, "/");
		if ((st = join_path(dir, file, path, err)))
			return st;
		while (i < s->n_files && strcmp(vn_safetensors_path(s->file[i]), path) != 0)
			i++;
		if (i == s->n_files) {
			if (i == FILES_MAX)
				return vn_fail(err, VN_ERR_FORMAT, "%s: more than %d files are listed", index, FILES_MAX);
			if (access(path, F_OK) != 0 && errno == ENOENT)
				return vn_fail(err, VN_ERR_NOTFOUND, "%s: lists %s, which is not there: download it too", index, file);
			if ((st = open_file(s, path, err)))
				return vn_context(err, st, "%s", index);
		}
		if (!vn_safetensors_find(s->file[i], name))
			return vn_fail(err, VN_ERR_NOTFOUND, "%s: %s is listed in %s, but that file does not hold it", index, name,
			               file);
	}
	return VN_OK;
}

static vn_status no_weights(const char *dir, vn_error *err)
{
	static const char *const pickled[] = { "pytorch_model.bin", "pytorch_model.bin.index.json" };
	char                     path[PATH_ROOM];
	bool                     there = false;

	for (size_t i = 0; i < sizeof pickled / sizeof *pickled && !there; i++)
		if (join_path(dir, pickled[i], path, err) || vn_file_there(path, &there, err))
			return VN_ERR_IO;
	return vn_fail(
		err, VN_ERR_NOTFOUND,
		there ? "%s: its weights are pytorch_model.bin, a pickle, which can run code and is not opened: load "
				"it with transformers where you trust it, and model.save_pretrained('DIR', "
				"safe_serialization=True)"
			  : "%s: no weights beside config.json: expected model.safetensors, or model.safetensors.index.json "
				"and the files that it lists; download them too",
		dir);
}

static vn_status open_index(vn_shards *s, const char *dir, vn_error *err)
{
	char           index[PATH_ROOM];
	VN_FREED char *text = NULL;
	size_t         bytes = 0;
	json_t        *map;
	json_error_t   je;
	bool           there;
	vn_status      st = join_path(dir, "model.safetensors.index.json", index, err);

	if (st || (st = vn_file_there(index, &there, err)))
		return st;
	if (!there)
		return no_weights(dir, err);
	if ((st = vn_read_text(index, INDEX_MAX, &text, &bytes, err)))
		return st;
	VN_OWNED json_t *root = vn_json_load(text, bytes, JSON_REJECT_DUPLICATES, &je);
	if (!root)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d:%d: not JSON: %s", index, je.line, je.column, je.text);
	map = json_object_get(root, "weight_map");
	if (!json_is_object(map) || json_object_size(map) == 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: weight_map is missing", index);
	if ((st = open_listed(s, dir, index, map, err)))
		return st;
	for (size_t i = 0; i < s->n_files; i++)
		for (size_t j = 0; j < vn_safetensors_count(s->file[i]); j++)
			if (!json_object_get(map, vn_safetensors_at(s->file[i], j)->name)) {
				if (s->unlisted < sizeof s->unlisted_name / sizeof *s->unlisted_name)
					s->unlisted_name[s->unlisted] = vn_safetensors_at(s->file[i], j)->name;
				s->unlisted++;
			}
	return VN_OK;
}

vn_status vn_shards_open(const char *dir, vn_shards *s, vn_error *err)
{
	char      path[PATH_ROOM];
	bool      there;
	vn_status st;

	*s = (vn_shards) { 0 };
	if ((st = join_path(dir, "model.safetensors", path, err)) || (st = vn_file_there(path, &there, err)))
		return st;
	st = there ? open_file(s, path, err) : open_index(s, dir, err);
	if (st)
		goto done;

	size_t n = 0;
	for (size_t i = 0; i < s->n_files; i++)
		n += vn_safetensors_count(s->file[i]);
	s->all = vn_alloc_zero(n, sizeof *s->all);
	for (size_t i = 0; i < s->n_files; i++) {
		const size_t      own = vn_safetensors_count(s->file[i]);
		vn_source_tensor *tensor = vn_safetensors_take(s->file[i]);
		if (own)
			memcpy(&s->all[s->n], tensor, own * sizeof *tensor);
		s->n += own;
		free(tensor);
	}
	qsort(s->all, s->n, sizeof *s->all, vn_source_by_name);
	for (size_t i = 1; i < s->n; i++)
		if (vn_source_by_name(&s->all[i - 1], &s->all[i]) == 0) {
			st = vn_fail(err, VN_ERR_FORMAT, "%s: %s is in two files", s->all[i].path, s->all[i].name);
			goto done;
		}
done:
	if (st)
		vn_shards_close(s);
	return st;
}

void vn_shards_close(vn_shards *s)
{
	for (size_t i = 0; i < s->n_files; i++)
		vn_safetensors_close(s->file[i]);
	VN_FREE(s->file, s->all);
	*s = (vn_shards) { 0 };
}
