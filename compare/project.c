/* project.c: see project.h. */
#include "compare/project.h"

#include "capture/base/yaml.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"

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

/* Reads a word; a path becomes relative to the folder of vernier.yaml. bare: a word without a slash
 * stays, if no such file is there. */
static vn_status read_word(reader *r, const char *key, bool path, bool bare, char **to)
{
	const size_t folder = (size_t)(strrchr(r->to->path, '/') - r->to->path);
	char        *word = NULL;
	vn_status    st = vn_yaml_copy(r->y, key, &word);

	if (st || !path || *word == '/') {
		*to = word;
		return st;
	}
	char      *whole = vn_alloc_check(vn_text_new("%.*s/%s", (int)folder, r->to->path, word));
	const bool stays = bare && !strchr(word, '/') && access(whole, F_OK) != 0;
	*to = stays ? word : whole;
	free(stays ? whole : word);
	return VN_OK;
}

static vn_status read_model(void *r)
{
	return read_word(r, "model", true, false, &((reader *)r)->to->model);
}

static vn_status read_limits(void *r)
{
	return read_word(r, "limits", true, true, &((reader *)r)->to->limits);
}

static vn_status read_names(void *r)
{
	return read_word(r, "names", true, true, &((reader *)r)->to->names);
}

static vn_status read_format(void *r)
{
	return read_word(r, "format", false, false, &((reader *)r)->to->format);
}

/* Writes the path of the next vernier.yaml; "": there is none. */
static void find_file(char path[PATH_MAX])
{
	char folder[PATH_MAX];

	*path = '\0';
	if (!getcwd(folder, sizeof folder))
		return;
	for (;;) {
		if (snprintf(path, PATH_MAX, "%s/" VN_PROJECT_FILE, strcmp(folder, "/") ? folder : "") < PATH_MAX &&
		    access(path, F_OK) == 0)
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
	char        path[PATH_MAX], *text = NULL;
	size_t      n = 0;
	struct stat file;
	reader      r = { .to = p };

	*p = (vn_project) { 0 };
	find_file(path);
	if (!*path || stat(path, &file) != 0)
		return VN_OK;
	char *kept = vn_alloc_text(path);
	if (file.st_uid != geteuid()) {
		p->ignored = kept;
		return VN_OK;
	}
	p->path = kept;
	vn_status st = vn_yaml_file(p->path, "a project", &text, &n, NULL, err);
	if (!st && !(st = vn_yaml_open(p->path, text, n, "a project", &r.y, err)))
		st = vn_yaml_document(r.y, "a project", sections, sizeof sections / sizeof *sections, &r);
	vn_yaml_close(r.y);
	free(text);
	return st;
}

void vn_project_free(vn_project *p)
{
	free(p->path);
	free(p->model);
	free(p->limits);
	free(p->names);
	free(p->format);
	free(p->ignored);
	*p = (vn_project) { 0 };
}
