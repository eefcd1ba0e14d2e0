/* limits_read.c: the text of a limits file (specs/limits.md) into rules.
 *
 * libyaml's events are read by hand, one function for each kind of thing a
 * file may hold. What the language does not have is refused where it stands:
 * anchors and aliases (so nothing can be expanded), tags, further documents,
 * nesting beyond what a rule needs, keys twice, words where a number belongs.
 */
#include "compare/limits_read.h"

#include "libref/base/glob.h"
#include "libref/base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define RULES_MAX 10000

typedef struct reader {
	yaml_parser_t parser;
	yaml_event_t  event; /* the current one */
	bool          has_event;
	const char   *path;
	vn_limits    *l;
	vn_extends   *extends;
	vn_error     *err;
} reader;

#define LINE(e)   ((int)(e).start_mark.line + 1)
#define COLUMN(e) ((int)(e).start_mark.column + 1)

__attribute__((format(printf, 4, 5)))
static vn_status fail_at(reader *r, int line, int column, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return vn_fail(r->err, VN_ERR_FORMAT, "%s:%d:%d: %s", r->path, line, column, text);
}

#define FAIL(r, ...) fail_at(r, LINE((r)->event), COLUMN((r)->event), __VA_ARGS__)

static vn_status no_memory(reader *r)
{
	return vn_fail(r->err, VN_ERR_NOMEM, "%s: no memory for limits", r->path);
}

/* ---- events ----------------------------------------------------------------- */

static vn_status next(reader *r)
{
	if (r->has_event)
		yaml_event_delete(&r->event);
	r->has_event = false;
	if (!yaml_parser_parse(&r->parser, &r->event)) {
		const yaml_parser_t *p = &r->parser;
		if (p->error == YAML_MEMORY_ERROR)
			return no_memory(r);
		return fail_at(r, (int)p->problem_mark.line + 1, (int)p->problem_mark.column + 1, "not YAML: %s",
		               p->problem ? p->problem : "unreadable");
	}
	r->has_event = true;
	const yaml_event_t *e = &r->event;
	if (e->type == YAML_ALIAS_EVENT)
		return FAIL(r, "an alias (*%.40s); limits have none, write the value", (const char *)e->data.alias.anchor);
	const yaml_char_t *anchor = NULL, *tag = NULL;
	if (e->type == YAML_SCALAR_EVENT)
		anchor = e->data.scalar.anchor, tag = e->data.scalar.tag;
	if (e->type == YAML_SEQUENCE_START_EVENT)
		anchor = e->data.sequence_start.anchor, tag = e->data.sequence_start.tag;
	if (e->type == YAML_MAPPING_START_EVENT)
		anchor = e->data.mapping_start.anchor, tag = e->data.mapping_start.tag;
	if (anchor)
		return FAIL(r, "an anchor (&%.40s); limits have none", (const char *)anchor);
	if (tag)
		return FAIL(r, "a tag (%.40s); limits have none", (const char *)tag);
	return VN_OK;
}

/* The scalar that must stand here, borrowed until next. */
static vn_status word(reader *r, const char *what, const char **text)
{
	*text = "";
	if (r->event.type != YAML_SCALAR_EVENT)
		return FAIL(r, "%s must be one value, not a list or a map", what);
	*text = (const char *)r->event.data.scalar.value;
	if (strlen(*text) != r->event.data.scalar.length)
		return FAIL(r, "%s holds a NUL character", what);
	return VN_OK;
}

static vn_status copy_word(reader *r, const char *what, char **to)
{
	const char *text;
	vn_status st = word(r, what, &text);
	if (st)
		return st;
	if (*to)
		return FAIL(r, "%s twice", what);
	return (*to = strdup(text)) ? VN_OK : no_memory(r);
}

/* ---- values ------------------------------------------------------------------ */

static vn_status number(reader *r, const char *key, double *value)
{
	const char *text;
	char *end;
	vn_status st = word(r, key, &text);
	if (st)
		return st;
	if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
		return FAIL(r, "%s: '%.40s' is not a number", key, text);
	*value = strtod(text, &end);
	if (*end || end == text)
		return FAIL(r, "%s: '%.40s' is not a number", key, text);
	if (!isfinite(*value))
		return FAIL(r, "%s: '%.40s' is not a finite number", key, text);
	return VN_OK;
}

static vn_status allowed(reader *r, const char *key, int *to)
{
	const char *text;
	vn_status st = word(r, key, &text);
	if (st)
		return st;
	if (*to >= 0)
		return FAIL(r, "%s twice in one rule", key);
	if (strcmp(text, "allowed") != 0 && strcmp(text, "refused") != 0)
		return FAIL(r, "%s: '%.40s'; expected allowed or refused", key, text);
	*to = strcmp(text, "allowed") == 0;
	return VN_OK;
}

/* A limit that nothing breaks, or that nothing keeps to. */
static vn_status doubt(reader *r, vn_form form, vn_metric m, const char *key, double value)
{
	vn_limits  *l = r->l;
	const char *why = vn_limit_doubt(form, m, value);
	char text[VN_ERROR_MAX];
	if (!why)
		return VN_OK;
	snprintf(text, sizeof text, "%s:%d: %s: %g %s", r->path, LINE(r->event), key, value, why);
	char **more = realloc(l->warning, (size_t)(l->n_warnings + 1) * sizeof *more);
	if (!more)
		return no_memory(r);
	l->warning = more;
	if (!(more[l->n_warnings] = strdup(text)))
		return no_memory(r);
	l->n_warnings++;
	return VN_OK;
}

/* "nmse" or "nmse_over_floor". */
static bool metric_key(const char *key, bool plain_only, vn_form *form, vn_metric *m)
{
	static const char suffix[] = "_over_floor";
	char base[VN_KEY_TEXT];
	const size_t n = strlen(key), k = sizeof suffix - 1;
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

/* A number that can be kept to. */
static vn_status value_of(reader *r, const char *key, vn_form form, vn_metric m, double *value)
{
	const vn_metric_info *info = vn_metric_get(m);
	const double low = m == VN_M_COSINE || m == VN_M_WORST_TOKEN_COSINE ? -1 : 0;
	vn_status st = number(r, key, value);
	if (st)
		return st;
	if (*value < low)
		return FAIL(r, "%s: %g is below %g, nothing can keep to it", key, *value, low);
	if (form != VN_OVER_FLOOR && *value > info->top)
		return FAIL(r, "%s: %g is above %g, nothing can keep to it", key, *value, info->top);
	return doubt(r, form, m, key, *value);
}

/* { first: 1.0e-5, last: 2.0e-3 } */
static vn_status by_depth(reader *r, const char *key, vn_form form, vn_metric m, double end[2])
{
	static const char *const name[2] = { "first", "last" };
	const vn_metric_info *info = vn_metric_get(m);
	const int line = LINE(r->event), column = COLUMN(r->event);
	bool seen[2] = { false, false };
	vn_status st;

	if (info->scores)
		return FAIL(r, "%s: logits stand behind the last layer: expected one number, not first and last", key);
	for (;;) {
		const char *text;
		if ((st = next(r)))
			return st;
		if (r->event.type == YAML_MAPPING_END_EVENT)
			break;
		if ((st = word(r, "a key", &text)))
			return st;
		const int which = strcmp(text, name[0]) == 0 ? 0 : strcmp(text, name[1]) == 0 ? 1 : -1;
		if (which < 0)
			return FAIL(r, "%s: unknown key '%.40s'; by depth it has first and last", key, text);
		if (seen[which])
			return FAIL(r, "%s: %s twice", key, name[which]);
		seen[which] = true;
		if ((st = next(r)) || (st = value_of(r, key, form, m, &end[which])))
			return st;
		const bool high = form != VN_OVER_FLOOR && info->better == VN_HIGHER;
		if (!(high ? end[which] < 1 : end[which] > 0))
			return FAIL(r, "%s: %s: %g leaves no factor to go by; expected a number %s", key, name[which], end[which],
			            high ? "below 1" : "above 0");
	}
	if (!seen[0] || !seen[1])
		return fail_at(r, line, column, "%s: by depth, without %s", key, name[seen[0]]);
	return VN_OK;
}

static vn_status limit(reader *r, const char *key, vn_rule *rule, vn_form form, vn_metric m)
{
	double end[2] = { 0, 0 };
	vn_status st;

	if (rule->key[form][m].state != VN_UNSAID)
		return FAIL(r, "%s twice in one rule", key);
	rule->key[form][m].line = LINE(r->event);
	if (r->event.type == YAML_SCALAR_EVENT && strcmp((const char *)r->event.data.scalar.value, "none") == 0) {
		rule->key[form][m].state = VN_LIFTED;
		return VN_OK;
	}
	const bool deep = r->event.type == YAML_MAPPING_START_EVENT;
	if ((st = deep ? by_depth(r, key, form, m, end) : value_of(r, key, form, m, &end[0])))
		return st;
	rule->key[form][m].state = VN_SAID;
	rule->key[form][m].deep = deep;
	rule->key[form][m].value = end[0];
	rule->key[form][m].last = end[1];
	return VN_OK;
}

/* ---- rules -------------------------------------------------------------------- */

static vn_status new_rule(reader *r, vn_rule **rule)
{
	vn_limits *l = r->l;
	if (l->n_rules >= RULES_MAX)
		return FAIL(r, "more than %d rules", RULES_MAX);
	vn_rule **more = realloc(l->rule, (size_t)(l->n_rules + 1) * sizeof *more);
	if (!more)
		return no_memory(r);
	l->rule = more;
	if (!(*rule = calloc(1, sizeof **rule)))
		return no_memory(r);
	l->rule[l->n_rules++] = *rule;
	(*rule)->line = LINE(r->event);
	(*rule)->missing = (*rule)->extra = -1;
	return ((*rule)->file = strdup(r->path)) ? VN_OK : no_memory(r);
}

/* The keys of one rule, of the defaults, or of a without_floor inside them. */
static vn_status keys(reader *r, vn_rule *rule, bool is_rule, bool inner)
{
	char key[VN_KEY_TEXT];
	bool had_inner = false;
	vn_status st;

	if (r->event.type != YAML_MAPPING_START_EVENT)
		return FAIL(r, "expected a map of limits (key: value)");
	const int line = LINE(r->event), column = COLUMN(r->event);
	for (;;) {
		const char *text;
		vn_form   form;
		vn_metric m;
		if ((st = next(r)))
			return st;
		if (r->event.type == YAML_MAPPING_END_EVENT)
			break;
		if ((st = word(r, "a key", &text)))
			return st;
		const int key_line = LINE(r->event), key_column = COLUMN(r->event);
		if (snprintf(key, sizeof key, "%s", text) >= (int)sizeof key)
			return FAIL(r, "unknown key or metric '%.40s...'", text);
		if ((st = next(r)))
			return st;
		if (!inner && is_rule && strcmp(key, "match") == 0) {
			vn_error why;
			if ((st = copy_word(r, key, &rule->match)))
				return st;
			if (vn_glob_check(rule->match, &why))
				return FAIL(r, "match: %.400s", why.text);
		} else if (!inner && strcmp(key, "why") == 0) {
			st = copy_word(r, key, &rule->why);
		} else if (!inner && strcmp(key, "missing") == 0) {
			st = allowed(r, key, &rule->missing);
		} else if (!inner && strcmp(key, "extra") == 0) {
			st = allowed(r, key, &rule->extra);
		} else if (!inner && strcmp(key, "without_floor") == 0) {
			if (had_inner)
				return FAIL(r, "without_floor twice in one rule");
			had_inner = true;
			st = keys(r, rule, is_rule, true);
		} else if (metric_key(key, inner, &form, &m)) {
			st = limit(r, key, rule, inner ? VN_WITHOUT_FLOOR : form, m);
		} else {
			return fail_at(r, key_line, key_column, "unknown key or metric '%s'", key);
		}
		if (st)
			return st;
	}
	if (is_rule && !inner && !rule->match)
		return fail_at(r, line, column, "a rule without match");
	return VN_OK;
}

static vn_status rules(reader *r)
{
	vn_status st;
	if (r->event.type != YAML_SEQUENCE_START_EVENT)
		return FAIL(r, "rules must be a list");
	for (;;) {
		vn_rule *rule;
		if ((st = next(r)))
			return st;
		if (r->event.type == YAML_SEQUENCE_END_EVENT)
			return VN_OK;
		if ((st = new_rule(r, &rule)) || (st = keys(r, rule, true, false)))
			return st;
	}
}

static vn_status version(reader *r)
{
	const char *text;
	vn_status st = word(r, "version", &text);
	if (st)
		return st;
	return strcmp(text, "1") == 0 ? VN_OK : FAIL(r, "version '%.40s'; this vernier reads version 1", text);
}

static vn_status section(reader *r, const char *key, int line, int column, unsigned *seen)
{
	static const char *const name[] = { "version", "name", "extends", "defaults", "rules" };
	vn_rule *rule;
	vn_status st;
	int i = 0;
	while (i < 5 && strcmp(name[i], key) != 0)
		i++;
	if (i == 5)
		return fail_at(r, line, column, "unknown key '%.60s'; expected version, name, extends, defaults or rules", key);
	if (*seen & 1u << i)
		return fail_at(r, line, column, "%s twice", key);
	*seen |= 1u << i;
	switch (i) {
	case 0: return version(r);
	case 1: return copy_word(r, "name", &r->l->name);
	case 2:
		r->extends->line = LINE(r->event);
		r->extends->column = COLUMN(r->event);
		return copy_word(r, "extends", &r->extends->name);
	case 3: return (st = new_rule(r, &rule)) ? st : keys(r, rule, false, false);
	default: return rules(r);
	}
}

static vn_status document(reader *r)
{
	unsigned seen = 0;
	char key[128];
	vn_status st;

	if ((st = next(r)) || (st = next(r)))
		return st; /* the stream starts, the document starts */
	if (r->event.type == YAML_STREAM_END_EVENT)
		return fail_at(r, 1, 1, "empty; a limits file starts with version: 1");
	if ((st = next(r)))
		return st;
	if (r->event.type != YAML_MAPPING_START_EVENT)
		return FAIL(r, "expected version: 1 and what follows, a map");
	for (;;) {
		const char *text;
		if ((st = next(r)))
			return st;
		if (r->event.type == YAML_MAPPING_END_EVENT)
			break;
		if ((st = word(r, "a key", &text)))
			return st;
		const int line = LINE(r->event), column = COLUMN(r->event);
		snprintf(key, sizeof key, "%s", text);
		if ((st = next(r)) || (st = section(r, key, line, column, &seen)))
			return st;
	}
	if (!(seen & 1))
		return fail_at(r, 1, 1, "no version; a limits file starts with version: 1");
	if ((st = next(r)) || (st = next(r)))
		return st;
	return r->event.type == YAML_STREAM_END_EVENT ? VN_OK : FAIL(r, "a second document; one file, one document");
}

/* ---- text ------------------------------------------------------------------------ */

/* libyaml tells the byte of bad UTF-8 but not the line. */
static vn_status check_utf8(const char *path, const char *text, size_t n, vn_error *err)
{
	int line = 1, column = 1;
	const size_t good = vn_utf8_good(text, n);
	for (size_t i = 0; good < n && i < good; i += (size_t)vn_utf8_length(text + i, good - i)) {
		column = text[i] == '\n' ? 1 : column + 1;
		line += text[i] == '\n';
	}
	return good == n ? VN_OK : vn_fail(err, VN_ERR_FORMAT, "%s:%d:%d: not UTF-8 (byte 0x%02x)", path, line, column,
	                                   (unsigned)(unsigned char)text[good]);
}

vn_status vn_limits_text(const char *path, const char *text, size_t n, vn_limits **out, vn_extends *extends,
                         vn_error *err)
{
	reader r = { .path = path, .extends = extends, .err = err };
	vn_status st = check_utf8(path, text, n, err);

	*out = NULL;
	if (st)
		return st;
	if (!yaml_parser_initialize(&r.parser))
		return no_memory(&r);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	if (!(r.l = calloc(1, sizeof *r.l)) || !(r.l->path = strdup(path)))
		st = no_memory(&r);
	else
		r.l->digest = vn_digest_of(text, n);
	if (!st)
		st = document(&r);
	if (r.has_event)
		yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	if (st)
		vn_limits_destroy(r.l);
	else
		*out = r.l;
	return st;
}
