/* source_open.c: opens the source of a model, of either kind; see source.h. */
#include "libref/base/alloc.h"
#include "libref/base/map.h"
#include "libref/base/text.h"
#include "libref/model/gguf_source.h"
#include "libref/model/other_format.h"
#include "libref/model/shards.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_MAX = 4 << 20 };

static void release_shards(void *files)
{
	vn_shards_close(files);
	free(files);
}

static int is_gguf(const struct dirent *file)
{
	const size_t n = strlen(file->d_name);
	return n > 5 && strcmp(file->d_name + n - 5, ".gguf") == 0;
}

static bool holds(const char *dir, const char *name)
{
	char      *path = vn_alloc_check(vn_text_new("%s/%s", dir, name));
	const bool there = access(path, F_OK) == 0;

	free(path);
	return there;
}

static int is_shown(const struct dirent *file)
{
	return *file->d_name != '.';
}

/* Counts the models below a directory, up to two, as in HuggingFace's cache
 * (models--X--Y/snapshots/REVISION), and sets found (may be NULL) to the first by name. A link may
 * be a model, but none is looked for below it. `left`: how many entries are still looked at. */
static int find_below(const char *dir, int levels, int *left, char found[PATH_MAX])
{
	VN_FREED struct dirent **file = NULL;
	const int                n = scandir(dir, &file, is_shown, alphasort);
	char                     path[PATH_MAX];
	struct stat              is;
	int                      models = 0;

	for (int i = 0; i < n; i++) {
		if (models < 2 && (*left)-- > 0 && snprintf(path, sizeof path, "%s/%s", dir, file[i]->d_name) < PATH_MAX) {
			if (holds(path, "config.json")) {
				if (models++ == 0 && found)
					memcpy(found, path, sizeof path);
			} else if (levels > 1 && lstat(path, &is) == 0 && S_ISDIR(is.st_mode)) {
				models += find_below(path, levels - 1, left, models ? NULL : found);
			}
		}
		free(file[i]);
	}
	return models;
}

/* Reports a directory without config.json. If it was downloaded for its GGUF files, names one of
 * them; if for its weights, what they lack and, of pickles, how they are opened; if a model lies
 * below it, names that. */
static vn_status no_config(const char *dir, vn_error *err)
{
	static const char *const weights[] = { "pytorch_model.bin", "model.safetensors", "model.safetensors.index.json" };
	VN_FREED struct dirent **file = NULL;
	const int                n = scandir(dir, &file, is_gguf, alphasort);
	char                     below[PATH_MAX];
	size_t                   i = 0;
	int                      left = 2000, models = 0;

	while (i < sizeof weights / sizeof *weights && !holds(dir, weights[i]))
		i++;
	if (holds(dir, "adapter_config.json"))
		vn_fail(err, VN_ERR_NOTFOUND,
		        "%s: an adapter (PEFT), not a model: merge it into its base in Python: "
		        "model.merge_and_unload().save_pretrained('DIR')",
		        dir);
	else if (holds(dir, "model_index.json"))
		vn_fail(
			err, VN_ERR_NOTFOUND,
			"%s: a pipeline of diffusers, which the reference does not run; PyTorch does: vernier help any-model.md",
			dir);
	else if (n > 0)
		vn_fail(err, VN_ERR_NOTFOUND, "%s: no config.json in this directory; is the model %s/%s?", dir, dir,
		        file[0]->d_name);
	else if ((models = find_below(dir, 3, &left, below)))
		vn_fail(err, VN_ERR_NOTFOUND,
		        models > 1 ? "%s: no config.json in this directory; several models lie below it, for example %s"
		                   : "%s: no config.json in this directory; is the model %s?",
		        dir, below);
	else if (i == sizeof weights / sizeof *weights)
		vn_fail(err, VN_ERR_NOTFOUND,
		        "%s: no config.json in this directory; a model is a HuggingFace directory or a GGUF file", dir);
	else {
		char *path = vn_alloc_check(vn_text_new("%s/%s", dir, weights[i]));
		if (vn_other_format(path, true, err))
			vn_context(err, VN_ERR_NOTFOUND, "%s: no config.json in this directory: add that of these weights; then",
			           dir);
		else
			vn_fail(err, VN_ERR_NOTFOUND, "%s: no config.json in this directory: add that of %s", dir, weights[i]);
		free(path);
	}
	for (int k = 0; k < n; k++)
		free(file[k]);
	return VN_ERR_NOTFOUND;
}

static vn_status open_directory(vn_source *s, const char *dir, vn_error *err)
{
	vn_status  st;
	vn_shards *f;

	s->config_path = vn_alloc_check(vn_text_new("%s/config.json", dir));
	if (access(s->config_path, F_OK) != 0 && errno == ENOENT)
		return no_config(dir, err);
	if ((st = vn_read_text(s->config_path, CONFIG_MAX, &s->config, &s->config_bytes, err)))
		return st;
	s->files = f = vn_alloc_zero(1, sizeof *f);
	s->release = release_shards;
	if ((st = vn_shards_open(dir, f, err)))
		return st;
	s->tensor = f->all;
	s->n = f->n;
	f->all = NULL;
	for (size_t i = 0; !s->provenance && i < f->n_files; i++)
		s->provenance = vn_safetensors_meta(f->file[i], "provenance");
	if (f->unlisted)
		vn_source_warn(s, "%s: %zu tensors are in the files but not in the index; they are used: %s%s%s%s%s%s", dir,
		               f->unlisted, f->unlisted_name[0], f->unlisted > 1 ? ", " : "",
		               f->unlisted > 1 ? f->unlisted_name[1] : "", f->unlisted > 2 ? ", " : "",
		               f->unlisted > 2 ? f->unlisted_name[2] : "", f->unlisted > 3 ? "..." : "");
	snprintf(s->format, sizeof s->format, "safetensors");
	return VN_OK;
}

static vn_status open_gguf(vn_source *s, const char *path, vn_error *err)
{
	vn_gguf  *f;
	vn_status st = vn_other_format(path, true, err);

	st = st ? st : vn_gguf_open(path, &f, err);
	return st ? st : vn_source_of_gguf(f, s, err);
}

vn_status vn_source_open(const char *path, vn_source **source, vn_error *err)
{
	struct stat file;
	vn_source  *s;
	vn_status   st;

	*source = NULL;
	if (stat(path, &file) != 0)
		return vn_other_place(path, errno, err);
	s = vn_alloc_zero(1, sizeof *s);
	if ((st = S_ISDIR(file.st_mode) ? open_directory(s, path, err) : open_gguf(s, path, err)))
		vn_source_close(s);
	else
		*source = s;
	return st;
}
