/* name_map_read.c: parses the text of a name map into rules (specs/names.md). */
#include "capture/names/name_map.h"

#include "capture/view/dims.h"
#include "capture/base/shipped.h"
#include "capture/base/yaml.h"
#include "libref/base/alloc.h"
#include "libref/base/glob.h"
#include "libref/base/map.h"
#include "libref/base/text.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RULES = 4096 };

/* The keys of a rule that are true or false, as bits. */
enum { IGNORE = 1, FALLBACK = 2, COPY = 4, IN_MODEL = 8 };

typedef struct map_reader {
	vn_yaml          *y;
	vn_name_map      *m;
	vn_name_map_rule *rule;
	unsigned          flags; /* those that the rule has so far */
} map_reader;

static vn_status number_of(map_reader *r, const char *text, int *times)
{
	const char *p = text;
	size_t      length;
	int         add;
	for (*times = 0; (p = vn_name_map_number(p, &length, &add)); p += length)
		++*times;
	return *times > 1 ? vn_yaml_fail(r->y, "'%.80s': {n} twice", text) : VN_OK;
}

/* A glob with at most one {n}. */
static vn_status check_from(map_reader *r, const char *key, const char *text)
{
	char      plain[VN_GLOB_MAX + 8];
	vn_error  why;
	size_t    length;
	int       add = 0, times;
	vn_status st = number_of(r, text, &times);
	if (!st && times && vn_name_map_number(text, &length, &add) && length > 3)
		return vn_yaml_fail(r->y, "'%.80s': %s can contain {n} only; {n-1} and {n+1} belong in to", text, key);
	if (!st && !vn_name_map_name(text, 1, plain, sizeof plain))
		return vn_yaml_fail(r->y, "a name of more than %d bytes", VN_GLOB_MAX);
	return !st && vn_glob_check(plain, &why) ? vn_yaml_fail(r->y, "'%.80s': %.200s", text, why.text) : st;
}

/* A checkpoint name, without wildcards. */
static vn_status check_name(map_reader *r, const char *key, const char *text)
{
	char            plain[VN_NAME_MAX];
	size_t          length;
	int             times, add = 0;
	const vn_status st = number_of(r, text, &times);
	if (st)
		return st;
	vn_name_map_number(text, &length, &add);
	if (!*text || !vn_name_map_name(text, add < 0 ? -add : 1, plain, sizeof plain) || strpbrk(plain, "*?{},"))
		return vn_yaml_fail(
			r->y, "%s: '%.80s' is not a name; expected one without wildcards, {n} (or {n-1}, {n+1}) for the layer", key,
			text);
	return VN_OK;
}

/* Returns VN_OK if the text may be the value of the key. */
typedef vn_status text_check(map_reader *r, const char *key, const char *text);

/* check NULL: any text. */
static vn_status read_text(map_reader *r, const char *key, char **to, text_check *check)
{
	const vn_status st = vn_yaml_copy(r->y, key, to);
	return st || !check ? st : check(r, key, *to);
}

static vn_status read_names(map_reader *r, const char *key, char **list, int *n, int least)
{
	vn_status st;
	if (vn_yaml_at(r->y) != VN_YAML_LIST)
		return vn_yaml_fail(r->y, "%s must be a list of names", key);
	if (*n)
		return vn_yaml_fail(r->y, "%s twice", key);
	const int line = vn_yaml_line(r->y), column = vn_yaml_column(r->y);
	for (;;) {
		if ((st = vn_yaml_next(r->y)))
			return st;
		if (vn_yaml_at(r->y) == VN_YAML_END_LIST)
			break;
		if (*n == VN_MAP_NAMES)
			return vn_yaml_fail(r->y, "%s: more than %d names", key, VN_MAP_NAMES);
		if ((st = read_text(r, key, &list[(*n)++], check_name)))
			return st;
	}
	return *n < least ? vn_yaml_fail_at(r->y, line, column, "%s: %d of at least %d names given", key, *n, least)
	                  : VN_OK;
}

static vn_status read_flag(map_reader *r, const char *key, unsigned bit, bool *to)
{
	const char     *text;
	const vn_status st = vn_yaml_word(r->y, key, &text);
	if (st)
		return st;
	if (r->flags & bit)
		return vn_yaml_fail(r->y, "%s twice", key);
	r->flags |= bit;
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return vn_yaml_fail(r->y, "%s: '%.40s'; expected true or false", key, text);
	*to = strcmp(text, "true") == 0;
	return VN_OK;
}

static vn_status check_axes(map_reader *r, const char *key, const char *text)
{
	const char *why = NULL;
	vn_dims     dims;
	return vn_dims_parse(text, &dims, &why) ? VN_OK : vn_yaml_fail(r->y, "%s: '%.80s': %s", key, text, why);
}

static vn_status check_glob(map_reader *r, const char *key, const char *text)
{
	vn_error why;
	return vn_glob_check(text, &why) ? vn_yaml_fail(r->y, "%s: %.400s", key, why.text) : VN_OK;
}

typedef struct alternative {
	map_reader *r;
	char      **to, **axes;
} alternative;

static vn_status alternative_key(void *context, const char *key, int line, int column)
{
	alternative *a = context;
	if (strcmp(key, "to") == 0)
		return read_text(a->r, key, a->to, check_name);
	if (strcmp(key, "axes") == 0)
		return read_text(a->r, key, a->axes, check_axes);
	return vn_yaml_fail_at(a->r->y, line, column, "unknown key '%.60s'; each of either has to and axes", key);
}

static vn_status read_either(map_reader *r, vn_name_map_rule *rule)
{
	vn_status st = VN_OK;
	int       n = 0;
	if (vn_yaml_at(r->y) != VN_YAML_LIST)
		return vn_yaml_fail(r->y, "either must be a list of two: { to: NAME, axes: WORDS }");
	if (rule->either[0])
		return vn_yaml_fail(r->y, "either twice");
	const int line = vn_yaml_line(r->y), column = vn_yaml_column(r->y);
	for (; !st; n++) {
		if ((st = vn_yaml_next(r->y)) || vn_yaml_at(r->y) == VN_YAML_END_LIST)
			break;
		if (n == 2)
			return vn_yaml_fail(r->y, "either: more than two");
		st = vn_yaml_map(r->y, "{ to: NAME, axes: WORDS }", alternative_key,
		                 &(alternative) { r, &rule->either[n], &rule->either_axes[n] });
	}
	return st ? st
	       : n == 2 && rule->either[0] && rule->either[1]
	           ? VN_OK
	           : vn_yaml_fail_at(r->y, line, column, "either: the two names are equal");
}

/* The keys of a rule whose values are texts. */
static const struct {
	const char *key;
	size_t      at; /* the offset of the rule's char * */
	text_check *check;
} texts[] = {
	{ "from", offsetof(vn_name_map_rule, from), check_from },
	{ "to", offsetof(vn_name_map_rule, to), check_name },
	{ "again", offsetof(vn_name_map_rule, again), check_name },
	{ "along", offsetof(vn_name_map_rule, along), NULL },
	{ "each", offsetof(vn_name_map_rule, each), NULL },
	{ "axes", offsetof(vn_name_map_rule, axes), check_axes },
	{ "to_axes", offsetof(vn_name_map_rule, to_axes), check_axes },
	{ "cut", offsetof(vn_name_map_rule, cut), NULL },
	{ "op", offsetof(vn_name_map_rule, op), check_glob },
	{ "family", offsetof(vn_name_map_rule, family), check_glob },
};

enum { TEXTS = sizeof texts / sizeof *texts };

static char **text_at(vn_name_map_rule *rule, int i)
{
	return (char **)((char *)rule + texts[i].at);
}

static vn_status rule_key(void *context, const char *key, int line, int column)
{
	map_reader       *r = context;
	vn_name_map_rule *rule = r->rule;

	for (int i = 0; i < TEXTS; i++)
		if (strcmp(key, texts[i].key) == 0)
			return read_text(r, key, text_at(rule, i), texts[i].check);
	if (strcmp(key, "plus") == 0)
		return read_names(r, key, rule->plus, &rule->n_plus, 1);
	if (strcmp(key, "parts") == 0)
		return read_names(r, key, rule->parts, &rule->n_parts, 2);
	if (strcmp(key, "either") == 0)
		return read_either(r, rule);
	if (strcmp(key, "ignore") == 0)
		return read_flag(r, key, IGNORE, &rule->ignore);
	if (strcmp(key, "fallback") == 0)
		return read_flag(r, key, FALLBACK, &rule->fallback);
	if (strcmp(key, "copy") == 0)
		return read_flag(r, key, COPY, &rule->copy);
	if (strcmp(key, "in_model") == 0)
		return read_flag(r, key, IN_MODEL, &rule->in_model);
	return vn_yaml_fail_at(r->y, line, column,
	                       "unknown key '%.60s'; a rule has from, plus, to, again, either, parts, "
	                       "along, each, axes, to_axes, cut, op, family, in_model, fallback, copy, ignore",
	                       key);
}

/* Does text have an axis with that word, or with exactly that word (whole)? */
static bool has_axis(const char *text, const char *word, bool whole)
{
	vn_dims     dims;
	const char *why;
	if (!text || !vn_dims_parse(text, &dims, &why))
		return false;
	const int i = vn_dims_find(&dims, word);
	return i >= 0 && (!whole || ((i == 0 || dims.atom[i - 1].axis < dims.atom[i].axis) &&
	                             (i == dims.n - 1 || dims.atom[i + 1].axis > dims.atom[i].axis)));
}

static bool same_words(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns what is wrong with the keys of a rule together; NULL: nothing. */
static const char *wrong_keys(const vn_name_map_rule *k)
{
	if (!k->from)
		return "a rule without from";
	if (k->ignore && (k->to || k->either[0] || k->n_parts))
		return "ignore cannot be combined with to";
	if (!k->ignore && !k->to && !k->either[0] && !k->n_parts)
		return "a rule without to, either, parts or ignore";
	if (k->either[0] && (k->to || k->n_parts || k->n_plus || k->axes))
		return "either cannot be combined with to, axes, parts or plus";
	if (k->n_parts && !k->along)
		return "parts without along";
	if (k->along && !k->n_parts)
		return "along without parts";
	if (k->n_parts && !has_axis(k->axes, k->along, false))
		return "parts: along is not one of axes";
	if (k->each && !has_axis(k->axes, k->each, true))
		return "each is not one of axes, or is part of one";
	if (k->each && same_words(k->each, k->along))
		return "each and along are the same axis";
	if (k->each && (k->n_plus || k->cut || k->ignore || k->either[0]))
		return "each cannot be combined with plus, cut, either or ignore";
	if (k->cut && k->axes && !has_axis(k->axes, k->cut, false))
		return "cut is not one of axes";
	if (k->to_axes && !k->axes)
		return "to_axes without axes";
	if (k->copy && (k->fallback || k->n_parts || k->n_plus || k->either[0]))
		return "copy cannot be combined with fallback, parts, plus or either";
	if (k->again && (!k->to || k->fallback || k->copy))
		return "again needs to, and cannot be combined with fallback or copy";
	if (k->in_model && !k->to)
		return "in_model without to";
	return k->to_axes && k->n_parts ? "to_axes cannot be combined with parts" : NULL;
}

/* Checks the keys of a rule against each other. */
static vn_status check_rule(map_reader *r)
{
	const vn_name_map_rule *k = r->rule;
	int                     in = 0, out;
	vn_status               st = VN_OK;
	const char             *wrong = wrong_keys(k);

	if (wrong)
		return vn_yaml_fail_at(r->y, k->line, k->column, "%s", wrong);
	const char *const all[] = { k->to, k->again, k->either[0], k->either[1] };
	st = number_of(r, k->from, &in);
	if (!st && k->each && in)
		return vn_yaml_fail_at(r->y, k->line, k->column, "each gives the value of {n}, so from must not contain {n}");
	in += k->each != NULL;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!st && all[i] && !(st = number_of(r, all[i], &out)) && out > in)
			return vn_yaml_fail_at(r->y, k->line, k->column, "'%.80s' has {n}, from has none", all[i]);
	for (int i = 0; !st && i < k->n_parts + k->n_plus; i++) {
		const char *text = i < k->n_parts ? k->parts[i] : k->plus[i - k->n_parts];
		if (!(st = number_of(r, text, &out)) && out > in)
			return vn_yaml_fail_at(r->y, k->line, k->column, "'%.80s' has {n}, from has none", text);
	}
	for (int i = 0; !st && i < r->m->n - 1; i++) {
		const vn_name_map_rule *old = &r->m->rule[i];
		if (strcmp(old->from, k->from) == 0 && same_words(old->op, k->op) && same_words(old->family, k->family))
			return vn_yaml_fail_at(r->y, k->line, k->column, "'%.80s' has a rule already, in line %d", k->from,
			                       old->line);
	}
	return st;
}

static vn_status read_rules(void *context)
{
	map_reader  *r = context;
	vn_name_map *m = r->m;
	vn_status    st;
	if (vn_yaml_at(r->y) != VN_YAML_LIST)
		return vn_yaml_fail(r->y, "rules must be a list");
	for (;;) {
		if ((st = vn_yaml_next(r->y)))
			return st;
		if (vn_yaml_at(r->y) == VN_YAML_END_LIST)
			return VN_OK;
		if (m->n == MOST_RULES)
			return vn_yaml_fail(r->y, "more than %d rules", MOST_RULES);
		m->rule = vn_alloc_grown(m->rule, (size_t)m->n, sizeof *m->rule);
		r->rule = &m->rule[m->n++];
		r->flags = 0;
		*r->rule = (vn_name_map_rule) { .line = vn_yaml_line(r->y), .column = vn_yaml_column(r->y) };
		if ((st = vn_yaml_map(r->y, "a rule (from, to...)", rule_key, r)) || (st = check_rule(r)))
			return st;
	}
}

static vn_status read_name(void *context)
{
	map_reader *r = context;
	return vn_yaml_copy(r->y, "name", &r->m->name);
}

static const vn_yaml_section sections[] = { { "name", read_name }, { "rules", read_rules } };

vn_status vn_name_map_parse(const char *path, const char *text, size_t n, vn_name_map **m, vn_error *err)
{
	map_reader r = { 0 };
	vn_status  st = vn_yaml_open(path, text, n, "name maps", &r.y, err);

	*m = NULL;
	if (st)
		return st;
	r.m = vn_alloc_zero(1, sizeof *r.m);
	r.m->path = vn_alloc_text(path);
	st = vn_yaml_document(r.y, "a name map", sections, sizeof sections / sizeof *sections, &r);
	if (!st && r.m->n == 0)
		st = vn_yaml_fail_at(r.y, 1, 1, "no rules");
	vn_yaml_close(r.y);
	if (st)
		vn_name_map_destroy(r.m);
	else
		*m = r.m;
	return st;
}

/* Writes the path of the shipped map called word to own. VN_ERR_NOTFOUND: there is no such map. */
static vn_status shipped_map(const char *word, char own[PATH_MAX], vn_error *err)
{
	char file[128];

	if (strchr(word, '/') || snprintf(file, sizeof file, "%s.yaml", word) >= (int)sizeof file)
		return VN_ERR_NOTFOUND;
	return vn_shipped_find("names", file, own, err);
}

static vn_status no_such_map(const char *path, vn_error *err)
{
	char all[200] = "";
	for (int i = 0; vn_name_maps[i]; i++)
		vn_text_add(all, sizeof all, "%s%s", i ? ", " : "", vn_name_maps[i]);
	return vn_fail(err, VN_ERR_NOTFOUND, "%.100s: no such file, and no shipped name map of that name (%s)", path, all);
}

vn_status vn_name_map_open(const char *name_or_path, vn_name_map **m, vn_error *err)
{
	char        own[PATH_MAX], *text;
	const char *path = own;
	size_t      n;
	vn_status   st = shipped_map(name_or_path, own, err);

	*m = NULL;
	if (st == VN_ERR_NOTFOUND) {
		path = name_or_path;
		if (!strchr(path, '/') && access(path, F_OK) != 0 && errno == ENOENT)
			return no_such_map(path, err);
		st = VN_OK;
	}
	if (st || (st = vn_read_text(path, VN_YAML_MOST, &text, &n, err)))
		return st;
	st = vn_name_map_parse(path, text, n, m, err);
	free(text);
	return st;
}

void vn_name_map_destroy(vn_name_map *m)
{
	if (!m)
		return;
	for (int i = 0; i < m->n; i++) {
		vn_name_map_rule *k = &m->rule[i];
		for (int j = 0; j < TEXTS; j++)
			free(*text_at(k, j));
		for (int j = 0; j < k->n_plus; j++)
			free(k->plus[j]);
		for (int j = 0; j < k->n_parts; j++)
			free(k->parts[j]);
		for (int side = 0; side < 2; side++)
			VN_FREE(k->either[side], k->either_axes[side]);
	}
	VN_FREE(m->rule, m->path, m->name, m);
}
