/* limits_file.c: limits files on disk, and the files they extend. */
#include "compare/limits/limits_read.h"

#include "capture/base/yaml.h"

#include "libref/base/alloc.h"
#include "libref/base/nearest.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXTENDS_MAX 8

/* The files being read, innermost first. A file must not extend one of them. */
typedef struct chain {
	const struct chain *outer;
	vn_yaml_id          file;
	int                 depth;
} chain;

static vn_status read_file(const char *path, const chain *outer, vn_limits **l, vn_error *err);

/* A file that exists but cannot be examined is not absent: opening it reports why. Shipped limits
 * of that name would be different ones. */
static bool is_absent(const char *path)
{
	return access(path, F_OK) != 0 && errno == ENOENT;
}

/* The path of the extended file: a plain name, either next to this file or shipped. */
static vn_status base_of(const char *from, const vn_extends *x, const chain *here, vn_limits **base, vn_error *err)
{
	const char *name = x->name, *slash = strrchr(from, '/');
	char        path[PATH_MAX];
	const int   dir = slash ? (int)(slash - from) + 1 : 0;

	if (!*name || strchr(name, '/') || name[0] == '.')
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s:%d:%d: extends '%.80s'; expected the name of a file in the same folder, "
		               "or of shipped limits",
		               from, x->line, x->column, name);
	if (here->depth >= EXTENDS_MAX)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d:%d: extends more than %d files deep", from, x->line, x->column,
		               EXTENDS_MAX);
	vn_error  why;
	vn_status st = VN_ERR_NOTFOUND;
	if (snprintf(path, sizeof path, "%.*s%s", dir, from, name) < (int)sizeof path)
		st = is_absent(path) ? vn_limits_find(name, path, &why) : VN_OK;
	if (st == VN_ERR_NOTFOUND)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s:%d:%d: extends '%.80s': no such file in this folder, and no shipped limits of that name",
		               from, x->line, x->column, name);
	if (st || (st = read_file(path, here, base, &why)))
		return vn_fail(err, st, "%s:%d:%d: extends: %.600s", from, x->line, x->column, why.text);
	return VN_OK;
}

/* Rules of the base come first, so that those of the extending file override them. */
static void put_before(vn_limits *l, vn_limits *base)
{
	const int n = base->n_rules + l->n_rules;
	vn_rule **rule = vn_alloc_resized(base->rule, (size_t)n, sizeof *rule);
	for (int i = 0; i < n; i++)
		if (i < base->n_rules)
			rule[i]->shipped = true;
		else
			rule[i] = l->rule[i - base->n_rules];
	for (int i = 0; i < l->warnings.n; i++)
		vn_lines_add(&base->warnings, "%s", l->warnings.line[i]);
	vn_lines_free(&l->warnings);
	free(l->rule);
	const vn_digest both[2] = { base->digest, l->digest };
	l->digest = vn_digest_of(both, sizeof both);
	l->rule = rule;
	l->n_rules = n;
	l->warnings = base->warnings;
	*base = (vn_limits) { .name = base->name, .path = base->path };
}

static vn_status parse_limits(const char *path, const char *text, size_t n, const chain *here, vn_limits **l,
                              vn_error *err)
{
	vn_extends x = { 0 };
	vn_limits *base = NULL;
	vn_status  st = vn_limits_text(path, text, n, l, &x, err);

	if (!st && x.name && !(st = base_of(path, &x, here, &base, err)))
		put_before(*l, base);
	if (st) {
		vn_limits_destroy(*l);
		*l = NULL;
	}
	vn_limits_destroy(base);
	free(x.name);
	return st;
}

static vn_status read_file(const char *path, const chain *outer, vn_limits **l, vn_error *err)
{
	chain     here = { .outer = outer, .depth = outer ? outer->depth + 1 : 0 };
	char     *text;
	size_t    n;
	vn_status st;

	*l = NULL;
	if ((st = vn_yaml_file(path, "limits", &text, &n, &here.file, err)))
		return st;
	for (const chain *c = outer; c; c = c->outer)
		if (c->file.device == here.file.device && c->file.inode == here.file.inode)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: extends itself", path);
	if (!st)
		st = parse_limits(path, text, n, &here, l, err);
	free(text);
	return st;
}

vn_status vn_limits_read(const char *path, vn_limits **l, vn_error *err)
{
	return read_file(path, NULL, l, err);
}

vn_status vn_limits_shipped(const char *file, vn_limits **l, vn_error *err)
{
	char      path[PATH_MAX];
	vn_status st;

	if ((st = vn_limits_find(file, path, err)) || (st = vn_limits_read(path, l, err)))
		return st;
	for (int i = 0; i < (*l)->n_rules; i++)
		(*l)->rule[i]->shipped = true;
	return VN_OK;
}

/* Does the file name begin with a precision and go on, such as fp16-acc32.yaml for fp16 or f16? */
static bool is_of_precision(const char *file, const char *word)
{
	const size_t n = strlen(word);

	if (word[0] == 'f' && word[1] != 'p' && file[0] == 'f' && file[1] == 'p')
		return n > 1 && strncmp(file + 2, word + 1, n - 1) == 0 && file[n + 1] == '-';
	return n > 1 && strncmp(file, word, n) == 0 && file[n] == '-';
}

/* Reports a name that is neither a file nor shipped limits. "fp16-acc32" is close to
 * "fp16-acc32.yaml". */
static vn_status no_limits(const char *path, vn_error *err)
{
	char            folder[PATH_MAX], bare[VN_NEAREST_MAX - 8], word[VN_NEAREST_MAX], first[NAME_MAX + 1];
	const char     *begun = NULL;
	const size_t    length = strlen(path);
	struct dirent **file = NULL;
	vn_nearest      near;
	int             n = 0;

	const bool ended = length > 5 && strcmp(path + length - 5, ".yaml") == 0;
	snprintf(bare, sizeof bare, "%.*s", (int)(ended ? length - 5 : length), path);
	snprintf(word, sizeof word, "%s.yaml", bare);
	vn_nearest_start(&near, word);
	vn_error why;
	if (vn_limits_find("fp32.yaml", folder, &why))
		return vn_fail(err, VN_ERR_NOTFOUND, "%s: no such file, and the shipped limits were not found: %.600s", path,
		               why.text);
	*strrchr(folder, '/') = 0;
	n = scandir(folder, &file, NULL, alphasort); /* sorted, so that the first of equally close names is suggested */
	for (int i = 0; i < n; i++) {
		vn_nearest_try(&near, file[i]->d_name);
		if (is_of_precision(file[i]->d_name, bare)) /* the last one: fp16-acc32.yaml */
			begun = strcpy(first, file[i]->d_name);
		free(file[i]);
	}
	free(file);
	if (begun && near.distance > 0)
		vn_nearest_settle(&near, begun);
	return vn_fail(err, VN_ERR_NOTFOUND, "%s: no such file, and no shipped limits of that name%s", path,
	               vn_nearest_hint(&near));
}

vn_status vn_limits_open(const char *path, vn_limits **l, vn_error *err)
{
	if (strchr(path, '/') || !is_absent(path))
		return vn_limits_read(path, l, err);
	const vn_status st = vn_limits_shipped(path, l, err);
	return st == VN_ERR_NOTFOUND ? no_limits(path, err) : st;
}

vn_status vn_limits_parse(const char *path, const char *text, size_t n, vn_limits **l, vn_error *err)
{
	const chain here = { 0 };
	return parse_limits(path, text, n, &here, l, err);
}
