/* project.c: see project.h. */
#include "compare/project.h"

#include "compare/report/report.h"
#include "capture/base/yaml.h"

#include "libref/base/alloc.h"
#include "libref/base/map.h"
#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/model/hub.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reader {
	vn_yaml    *y;
	vn_project *to;
} reader;

enum project_kind { WORD, MODEL, FILE_OR_NAME };

/* Reads a word. A path becomes relative to the folder of vernier.yaml; but what is no file there
 * may be a word (the name of shipped limits), or the name of a model in HuggingFace's cache. */
static vn_status read_word(reader *r, const char *key, enum project_kind kind, char **to)
{
	const size_t folder = (size_t)(strrchr(r->to->path, '/') - r->to->path);
	char        *word = NULL;
	vn_status    st = vn_yaml_copy(r->y, key, &word);

	*to = word;
	if (!st && !*word)
		return vn_yaml_fail(r->y, "%s has no value", key);
	if (!st && kind != WORD && strncmp(word, "~/", 2) == 0 && getenv("HOME")) {
		*to = vn_alloc_check(vn_text_new("%s%s", getenv("HOME"), word + 1));
		free(word);
		return VN_OK;
	}
	if (st || kind == WORD || *word == '/')
		return st;
	char       *whole = vn_alloc_check(vn_text_new("%.*s/%s", (int)folder, r->to->path, word));
	const char *found = kind == MODEL ? vn_hub_path(word) : word; /* the word: not in the cache */
	const bool  stays = access(whole, F_OK) != 0 && (kind == MODEL ? found != word : !strchr(word, '/'));
	*to = stays ? (char *)found : whole;
	if (stays)
		free(whole);
	else if (found != word)
		free((char *)found);
	if (*to != word)
		free(word);
	return VN_OK;
}

static vn_status read_model(void *r)
{
	return read_word(r, "model", MODEL, &((reader *)r)->to->model);
}

static vn_status read_limits(void *r)
{
	return read_word(r, "limits", FILE_OR_NAME, &((reader *)r)->to->limits);
}

static vn_status read_names(void *r)
{
	return read_word(r, "names", FILE_OR_NAME, &((reader *)r)->to->names);
}

static vn_status read_format(void *r)
{
	return read_word(r, "format", WORD, &((reader *)r)->to->format);
}

/* Writes the path of the next vernier.yaml; "": there is none. A link is one, wherever it leads. */
static void find_file(char path[PATH_MAX])
{
	struct stat there;
	char        folder[PATH_MAX];

	*path = '\0';
	if (!getcwd(folder, sizeof folder))
		return;
	for (;;) {
		if (snprintf(path, PATH_MAX, "%s/" VN_PROJECT_FILE, strcmp(folder, "/") ? folder : "") < PATH_MAX &&
		    lstat(path, &there) == 0)
			return;
		*path = '\0';
		char *slash = strrchr(folder, '/');
		if (!slash || !slash[1])
			return;
		slash[slash == folder] = '\0';
	}
}

vn_status vn_project_read(vn_project *p, vn_error *err)
{
	static const vn_yaml_section sections[] = {
		{ "model", read_model },
		{ "limits", read_limits },
		{ "names", read_names },
		{ "format", read_format },
	};
	char   path[PATH_MAX], *text = NULL;
	size_t n = 0;
	bool   mine = false;
	reader r = { .to = p };

	*p = (vn_project) { 0 };
	find_file(path);
	if (!*path)
		return VN_OK;
	vn_status st = vn_read_own_text(path, VN_YAML_MOST, &mine, &text, &n, err);
	if (st && !mine) /* gone meanwhile */
		return st;
	*(mine ? &p->path : &p->ignored) = vn_alloc_text(path);
	if (!st && mine && !(st = vn_yaml_open(p->path, text, n, "a project", &r.y, err)))
		st = vn_yaml_document(r.y, "a project", sections, sizeof sections / sizeof *sections, &r);
	vn_yaml_close(r.y);
	free(text);
	return st;
}

void vn_project_free(vn_project *p)
{
	VN_FREE(p->path, p->model, p->limits, p->names, p->format, p->ignored);
	*p = (vn_project) { 0 };
}

/* The whole file is read, and refused, whatever is asked of it. */
vn_status vn_project_setting(const char *command, const char *name, bool files, const char **value, const char **from,
                             vn_error *err)
{
	static vn_project p; /* until the program ends */
	static bool       read;
	const char       *model = strcmp(name, "model") == 0 ? getenv("VERNIER_MODEL") : NULL;
	char              all[120];
	vn_error          why;

	*from = "VERNIER_MODEL";
	if (model && *model) {
		static const char *found; /* until the program ends, too */
		*value = found = found ? found : vn_hub_path(model);
		return VN_OK;
	}
	if (!files)
		return VN_OK;
	if (!read && vn_project_read(&p, &why))
		return vn_fail(err, VN_ERR_FORMAT, "%s (--no-config ignores the file)", why.text);
	if (!read && p.ignored)
		vn_say(stderr, "vernier %s: note: %s belongs to another user and is not read\n", command, p.ignored);
	read = true;
	if (p.format && !vn_report_by_name(p.format))
		return vn_fail(err, VN_ERR_FORMAT, "%s: format must be one of %s, not '%s'", p.path,
		               vn_text_words(vn_report_names, all, sizeof all), p.format);
	*from = p.path;
	*value = strcmp(name, "model") == 0    ? p.model
	         : strcmp(name, "limits") == 0 ? p.limits
	         : strcmp(name, "names") == 0  ? p.names
	         : strcmp(name, "format") == 0 ? p.format
	                                       : NULL;
	return VN_OK;
}
