/* limits_file.c: limits files on disk, what they say, and the files they extend. */
#include "compare/limits/limits.h"

#include "capture/base/yaml.h"
#include "libref/base/alloc.h"
#include "libref/base/glob.h"
#include "libref/base/map.h"
#include "libref/base/nearest.h"
#include "libref/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file that a limits file extends, and where it says so. */
typedef struct extended_file {
	char *name; /* NULL: none. Freed by the caller, also after a failure */
	int   line, column;
} extended_file;

#define RULES_MAX 10000

typedef struct limits_reader {
	vn_yaml       *y;
	const char    *path;
	vn_limits     *l;
	extended_file *extends;
} limits_reader;

#define FAIL(r, ...) vn_yaml_fail((r)->y, __VA_ARGS__)

/* ---- values ------------------------------------------------------------------ */

/* Reads `allowed` or the given opposite; *to becomes 1 or 0. */
static vn_status read_permission(limits_reader *r, const char *key, const char *opposite, int *to)
{
	const char *text;
	vn_status   st = vn_yaml_word(r->y, key, &text);
	if (st)
		return st;
	if (*to >= 0)
		return FAIL(r, "%s twice in one rule", key);
	if (strcmp(text, "allowed") != 0 && strcmp(text, opposite) != 0)
		return FAIL(r, "%s: '%.40s'; expected allowed or %s", key, text, opposite);
	*to = strcmp(text, "allowed") == 0;
	return VN_OK;
}

/* Warns of a limit that nothing can break, or that nothing can pass. */
static void doubt_limit(limits_reader *r, vn_form form, vn_metric m, const char *key, double value)
{
	const char *why = vn_limit_doubt(form, m, value);
	if (why)
		vn_lines_add(&r->l->warnings, "%s:%d: %s: %g %s", r->path, vn_yaml_line(r->y), key, value, why);
}

/* Parses "nmse" or "nmse_over_floor". */
static bool metric_key(const char *key, bool plain_only, vn_form *form, vn_metric *m)
{
	static const char suffix[] = "_over_floor";
	char              base[VN_KEY_TEXT];
	const size_t      n = strlen(key), k = sizeof suffix - 1;
	*form = VN_PLAIN;
	if (vn_metric_from_name(key, m))
		return true;
	if (plain_only || n <= k || n - k >= sizeof base || strcmp(key + n - k, suffix) != 0)
		return false;
	memcpy(base, key, n - k);
	base[n - k] = 0;
	*form = VN_OVER_FLOOR;
	return vn_metric_from_name(base, m) && vn_metric_get(*m)->over_floor;
}

/* Reads a limit and checks that it can be met. */
static vn_status value_of(limits_reader *r, const char *key, vn_form form, vn_metric m, double *value)
{
	const vn_metric_info *info = vn_metric_get(m);
	const double          low = info->kind == VN_KIND_COSINE ? -1 : 0;
	vn_status             st = vn_yaml_number(r->y, key, value);
	if (st)
		return st;
	if (*value < low)
		return FAIL(r, "%s: %g is below %g, which nothing can meet", key, *value, low);
	if (form != VN_OVER_FLOOR && info->better == VN_HIGHER && *value > 1)
		return FAIL(r, "%s: %g is above 1, which nothing can meet", key, *value);
	doubt_limit(r, form, m, key, *value);
	return VN_OK;
}

/* { first: 1.0e-5, last: 2.0e-3 } */
static const char *const end_name[2] = { "first", "last" };

typedef struct depth {
	limits_reader *r;
	const char    *key;
	vn_form        form;
	vn_metric      m;
	double        *end;
	bool           seen[2];
} depth;

static vn_status depth_key(void *context, const char *text, int line, int column)
{
	depth         *d = context;
	limits_reader *r = d->r;
	const int      which = strcmp(text, end_name[0]) == 0 ? 0 : strcmp(text, end_name[1]) == 0 ? 1 : -1;
	vn_status      st;
	if (which < 0)
		return vn_yaml_fail_at(r->y, line, column,
		                       "%s: unknown key '%.40s'; a limit by depth has the keys first and last", d->key, text);
	if (d->seen[which])
		return vn_yaml_fail_at(r->y, line, column, "%s: %s twice", d->key, end_name[which]);
	d->seen[which] = true;
	if ((st = value_of(r, d->key, d->form, d->m, &d->end[which])))
		return st;
	const bool high = d->form != VN_OVER_FLOOR && vn_metric_get(d->m)->better == VN_HIGHER;
	if (!(high ? d->end[which] < 1 : d->end[which] > 0))
		return FAIL(r, "%s: %s: a limit by depth cannot reach %g; expected a number %s", d->key, end_name[which],
		            d->end[which], high ? "below 1" : "above 0");
	return VN_OK;
}

static vn_status by_depth(limits_reader *r, const char *key, vn_form form, vn_metric m, double end[2])
{
	depth     d = { r, key, form, m, end, { false, false } };
	const int line = vn_yaml_line(r->y), column = vn_yaml_column(r->y);
	vn_status st;

	if (vn_metric_get(m)->scores)
		return FAIL(r, "%s: logits come after the last layer: expected one number, not first and last", key);
	if ((st = vn_yaml_map(r->y, "first and last", depth_key, &d)))
		return st;
	if (!d.seen[0] || !d.seen[1])
		return vn_yaml_fail_at(r->y, line, column, "%s: a limit by depth lacks %s", key, end_name[d.seen[0]]);
	return VN_OK;
}

static vn_status read_limit(limits_reader *r, const char *key, vn_rule *rule, vn_form form, vn_metric m)
{
	double    end[2] = { 0, 0 };
	vn_status st;

	if (rule->key[form][m].state != VN_UNSAID)
		return FAIL(r, "%s twice in one rule", key);
	rule->key[form][m].line = vn_yaml_line(r->y);
	const char *text = "";
	if (vn_yaml_at(r->y) == VN_YAML_WORD && (st = vn_yaml_word(r->y, key, &text)))
		return st;
	if (strcmp(text, "none") == 0) {
		rule->key[form][m].state = VN_LIFTED;
		return VN_OK;
	}
	const bool deep = vn_yaml_at(r->y) == VN_YAML_MAP;
	if ((st = deep ? by_depth(r, key, form, m, end) : value_of(r, key, form, m, &end[0])))
		return st;
	rule->key[form][m].state = VN_SAID;
	rule->key[form][m].deep = deep;
	rule->key[form][m].value = end[0];
	rule->key[form][m].last = end[1];
	return VN_OK;
}

/* ---- rules -------------------------------------------------------------------- */

static vn_status new_rule(limits_reader *r, vn_rule **rule)
{
	vn_limits *l = r->l;
	if (l->n_rules >= RULES_MAX)
		return FAIL(r, "more than %d rules", RULES_MAX);
	l->rule = vn_alloc_grown(l->rule, (size_t)l->n_rules, sizeof *l->rule);
	l->rule[l->n_rules++] = *rule = vn_alloc_zero(1, sizeof **rule);
	(*rule)->line = vn_yaml_line(r->y);
	for (int i = 0; i < VN_N_PERMISSIONS; i++)
		(*rule)->permission[i] = -1;
	(*rule)->file = vn_alloc_text(r->path);
	return VN_OK;
}

/* The keys of one rule, of the defaults, or of a without_floor inside them. */
typedef struct body {
	limits_reader *r;
	vn_rule       *rule;
	bool           is_rule, inner, had_inner;
} body;

static vn_status read_keys(body *b);

/* METRIC: text */
static vn_status why_key(void *context, const char *key, int line, int column)
{
	body     *b = context;
	vn_form   form;
	vn_metric m;
	if (!metric_key(key, false, &form, &m))
		return vn_yaml_fail_at(b->r->y, line, column, "why_of: unknown metric '%.100s'", key);
	char **text = &b->rule->why_of[form == VN_OVER_FLOOR][m];
	if (*text)
		return vn_yaml_fail_at(b->r->y, line, column, "why_of: %s twice", key);
	return vn_yaml_copy(b->r->y, key, text);
}

/* Refuses a key of a rule, and says which it may have been. */
static vn_status unknown_key(body *b, const char *key, int line, int column)
{
	static const char *const over = "_over_floor";
	vn_nearest               near;
	char                     own[VN_NEAREST_MAX], both[VN_NEAREST_MAX];
	const size_t             n = strlen(key), tail = strlen(over);
	const bool               floors = !b->inner && n > tail && strcmp(key + n - tail, over) == 0;

	snprintf(own, sizeof own, "%.*s", (int)(floors ? n - tail : n), key);
	vn_nearest_start(&near, own);
	for (int m = 0; m < VN_N_METRICS; m++)
		if (!floors || vn_metric_get((vn_metric)m)->over_floor)
			vn_nearest_try(&near, vn_metric_get((vn_metric)m)->name);
	if (floors && vn_nearest_found(&near)) {
		snprintf(both, sizeof both, "%s%s", vn_nearest_found(&near), over);
		vn_nearest_settle(&near, both);
	} else if (!b->inner) {
		vn_nearest_try_words(&near, b->is_rule ? "match|why|why_of|without_floor" : "why|why_of|without_floor");
		for (int i = 0; i < VN_N_PERMISSIONS; i++)
			vn_nearest_try(&near, vn_permission_get((vn_permission)i)->key);
	}
	return vn_yaml_fail_at(b->r->y, line, column, "unknown key or metric '%.100s'%s", key, vn_nearest_hint(&near));
}

static vn_status rule_key(void *context, const char *key, int line, int column)
{
	body          *b = context;
	limits_reader *r = b->r;
	vn_rule       *rule = b->rule;
	vn_form        form;
	vn_metric      m;
	vn_error       why;
	vn_status      st;

	if (metric_key(key, b->inner, &form, &m))
		return read_limit(r, key, rule, b->inner ? VN_WITHOUT_FLOOR : form, m);
	if (b->inner)
		return unknown_key(b, key, line, column);
	if (b->is_rule && strcmp(key, "match") == 0) {
		if ((st = vn_yaml_copy(r->y, key, &rule->match)))
			return st;
		return vn_glob_check(rule->match, &why) ? FAIL(r, "match: %.400s", why.text) : VN_OK;
	}
	if (strcmp(key, "why") == 0)
		return vn_yaml_copy(r->y, key, &rule->why);
	if (strcmp(key, "why_of") == 0)
		return vn_yaml_map(r->y, "a map of metrics (metric: reason of its limit)", why_key, b);
	for (int i = 0; i < VN_N_PERMISSIONS; i++) {
		const vn_permission_info *info = vn_permission_get((vn_permission)i);
		if (strcmp(key, info->key) == 0)
			return read_permission(r, key, info->refusal, &rule->permission[i]);
	}
	if (strcmp(key, "without_floor") != 0)
		return unknown_key(b, key, line, column);
	if (b->had_inner)
		return FAIL(r, "without_floor twice in one rule");
	b->had_inner = true;
	return read_keys(&(body) { r, rule, b->is_rule, true, false });
}

static vn_status read_keys(body *b)
{
	const int       line = vn_yaml_line(b->r->y), column = vn_yaml_column(b->r->y);
	const vn_status st = vn_yaml_map(b->r->y, "a map of limits (key: value)", rule_key, b);
	if (!st && b->is_rule && !b->inner && !b->rule->match)
		return vn_yaml_fail_at(b->r->y, line, column, "a rule without match");
	/* A limit without a reason cannot be defended when it breaks. A file's defaults are explained
	 * by its name and head. */
	if (!st && b->is_rule && !b->inner && (!b->rule->why || !b->rule->why[strspn(b->rule->why, " \t\n")]))
		return vn_yaml_fail_at(b->r->y, line, column, "a rule without why: state the reason of the limit");
	return st;
}

static vn_status read_rules(void *context)
{
	limits_reader *r = context;
	vn_status      st;
	if (vn_yaml_at(r->y) != VN_YAML_LIST)
		return FAIL(r, "rules must be a list");
	for (;;) {
		vn_rule *rule = NULL;
		if ((st = vn_yaml_next(r->y)))
			return st;
		if (vn_yaml_at(r->y) == VN_YAML_END_LIST)
			return VN_OK;
		if ((st = new_rule(r, &rule)) || (st = read_keys(&(body) { r, rule, true, false, false })))
			return st;
	}
}

static vn_status read_name(void *context)
{
	limits_reader *r = context;
	return vn_yaml_copy(r->y, "name", &r->l->name);
}

static vn_status read_extends(void *context)
{
	limits_reader *r = context;
	r->extends->line = vn_yaml_line(r->y);
	r->extends->column = vn_yaml_column(r->y);
	return vn_yaml_copy(r->y, "extends", &r->extends->name);
}

static vn_status read_defaults(void *context)
{
	limits_reader  *r = context;
	vn_rule        *rule = NULL;
	const vn_status st = new_rule(r, &rule);
	return st ? st : read_keys(&(body) { r, rule, false, false, false });
}

static const vn_yaml_section sections[] = {
	{ "name", read_name },
	{ "extends", read_extends },
	{ "defaults", read_defaults },
	{ "rules", read_rules },
};

/* Parses the rules of one file, without the file it extends. extends: zeroed by the caller. */
static vn_status parse_rules(const char *path, const char *text, size_t n, vn_limits **out, extended_file *extends,
                             vn_error *err)
{
	limits_reader r = { .path = path, .extends = extends };
	vn_status     st;

	*out = NULL;
	if ((st = vn_yaml_open(path, text, n, "limits", &r.y, err)))
		return st;
	r.l = vn_alloc_zero(1, sizeof *r.l);
	r.l->path = vn_alloc_text(path);
	r.l->digest = vn_digest_of(text, n);
	st = vn_yaml_document(r.y, "a limits file", sections, sizeof sections / sizeof *sections, &r);
	vn_yaml_close(r.y);
	if (st)
		vn_limits_destroy(r.l);
	else
		*out = r.l;
	return st;
}

#define EXTENDS_MAX 8

/* The files being read, innermost first. A file must not extend one of them. */
typedef struct chain {
	const struct chain *outer;
	struct stat         file;
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
static vn_status base_of(const char *from, const extended_file *x, const chain *here, vn_limits **base, vn_error *err)
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
	extended_file x = { 0 };
	vn_limits    *base = NULL;
	vn_status     st = parse_rules(path, text, n, l, &x, err);

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
	chain          here = { .outer = outer, .depth = outer ? outer->depth + 1 : 0 };
	VN_FREED char *text = NULL;
	size_t         n;
	vn_status      st;

	*l = NULL;
	if ((st = vn_read_text(path, VN_YAML_MOST, &text, &n, err)))
		return st == VN_ERR_FORMAT ? vn_context(err, st, "limits are a file of rules (vernier help limits.md)") : st;
	if (stat(path, &here.file) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	for (const chain *c = outer; c; c = c->outer)
		if (c->file.st_dev == here.file.st_dev && c->file.st_ino == here.file.st_ino)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: extends itself", path);
	return st ? st : parse_limits(path, text, n, &here, l, err);
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
	double          number;
	int             n = 0;

	if (vn_text_real(path, 0, DBL_MAX, &number))
		return vn_fail(err, VN_ERR_NOTFOUND, "%s: limits are a file of rules, not a number (vernier help limits.md)",
		               path);
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
