/* yaml.c: see yaml.h. Reads libyaml's events, and refuses those that yaml.h excludes. */
#include "capture/base/yaml.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct vn_yaml {
	yaml_parser_t parser;
	yaml_event_t  event; /* the current event */
	bool          has_event;
	const char   *path, *what;
	vn_error     *err;
};

int vn_yaml_line(const vn_yaml *y)
{
	return (int)y->event.start_mark.line + 1;
}

int vn_yaml_column(const vn_yaml *y)
{
	return (int)y->event.start_mark.column + 1;
}

vn_yaml_kind vn_yaml_at(const vn_yaml *y)
{
	switch (y->event.type) {
	case YAML_SCALAR_EVENT: return VN_YAML_WORD;
	case YAML_SEQUENCE_START_EVENT: return VN_YAML_LIST;
	case YAML_MAPPING_START_EVENT: return VN_YAML_MAP;
	case YAML_SEQUENCE_END_EVENT: return VN_YAML_END_LIST;
	case YAML_MAPPING_END_EVENT: return VN_YAML_END_MAP;
	default: return VN_YAML_OTHER;
	}
}

static vn_status fail_list(vn_yaml *y, int line, int column, const char *format, va_list args)
{
	char text[512];
	vsnprintf(text, sizeof text, format, args);
	return vn_fail(y->err, VN_ERR_FORMAT, "%s:%d:%d: %s", y->path, line, column, text);
}

vn_status vn_yaml_fail_at(vn_yaml *y, int line, int column, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const vn_status st = fail_list(y, line, column, format, args);
	va_end(args);
	return st;
}

vn_status vn_yaml_fail(vn_yaml *y, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const vn_status st = fail_list(y, vn_yaml_line(y), vn_yaml_column(y), format, args);
	va_end(args);
	return st;
}

/* ---- events ----------------------------------------------------------------- */

static vn_status refuse_extras(vn_yaml *y)
{
	const yaml_event_t *e = &y->event;
	const yaml_char_t  *anchor = NULL, *tag = NULL;
	if (e->type == YAML_ALIAS_EVENT)
		return vn_yaml_fail(y, "an alias (*%.40s); %s do not support aliases, write the value",
		                    (const char *)e->data.alias.anchor, y->what);
	if (e->type == YAML_SCALAR_EVENT)
		anchor = e->data.scalar.anchor, tag = e->data.scalar.tag;
	if (e->type == YAML_SEQUENCE_START_EVENT)
		anchor = e->data.sequence_start.anchor, tag = e->data.sequence_start.tag;
	if (e->type == YAML_MAPPING_START_EVENT)
		anchor = e->data.mapping_start.anchor, tag = e->data.mapping_start.tag;
	if (anchor)
		return vn_yaml_fail(y, "an anchor (&%.40s); %s do not support anchors", (const char *)anchor, y->what);
	if (tag)
		return vn_yaml_fail(y, "a tag (%.40s); %s do not support tags", (const char *)tag, y->what);
	return VN_OK;
}

vn_status vn_yaml_next(vn_yaml *y)
{
	if (y->has_event)
		yaml_event_delete(&y->event);
	y->has_event = false;
	if (!yaml_parser_parse(&y->parser, &y->event)) {
		const yaml_parser_t *p = &y->parser;
		vn_alloc_check(p->error == YAML_MEMORY_ERROR ? NULL : p);
		return vn_yaml_fail_at(y, (int)p->problem_mark.line + 1, (int)p->problem_mark.column + 1, "not YAML: %s",
		                       p->problem ? p->problem : "unreadable");
	}
	y->has_event = true;
	return refuse_extras(y);
}

/* ---- values ----------------------------------------------------------------- */

vn_status vn_yaml_word(vn_yaml *y, const char *what, const char **text)
{
	*text = "";
	if (y->event.type != YAML_SCALAR_EVENT)
		return vn_yaml_fail(y, "%s must be one value, not a list or a map", what);
	*text = (const char *)y->event.data.scalar.value;
	if (strlen(*text) != y->event.data.scalar.length)
		return vn_yaml_fail(y, "%s holds a NUL character", what);
	return VN_OK;
}

vn_status vn_yaml_copy(vn_yaml *y, const char *what, char **to)
{
	const char     *text;
	const vn_status st = vn_yaml_word(y, what, &text);
	if (st)
		return st;
	if (*to)
		return vn_yaml_fail(y, "%s twice", what);
	*to = vn_alloc_text(text);
	return VN_OK;
}

vn_status vn_yaml_number(vn_yaml *y, const char *what, double *value)
{
	const char     *text;
	char           *end;
	const vn_status st = vn_yaml_word(y, what, &text);
	if (st)
		return st;
	if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
		return vn_yaml_fail(y, "%s: '%.40s' is not a number", what, text);
	*value = strtod(text, &end);
	if (*end || end == text)
		return vn_yaml_fail(y, "%s: '%.40s' is not a number", what, text);
	if (!isfinite(*value))
		return vn_yaml_fail(y, "%s: '%.40s' is not a finite number", what, text);
	return VN_OK;
}

vn_status vn_yaml_map(vn_yaml *y, const char *what, vn_yaml_each *each, void *context)
{
	char      key[128];
	vn_status st;
	if (y->event.type != YAML_MAPPING_START_EVENT)
		return vn_yaml_fail(y, "expected %s", what);
	for (;;) {
		const char *text;
		if ((st = vn_yaml_next(y)))
			return st;
		if (y->event.type == YAML_MAPPING_END_EVENT)
			return VN_OK;
		if ((st = vn_yaml_word(y, "a key", &text)))
			return st;
		const int line = vn_yaml_line(y), column = vn_yaml_column(y);
		snprintf(key, sizeof key, "%s", text);
		if ((st = vn_yaml_next(y)) || (st = each(context, key, line, column)))
			return st;
	}
}

/* ---- the document ----------------------------------------------------------- */

static vn_status read_version(vn_yaml *y)
{
	const char     *text;
	const vn_status st = vn_yaml_word(y, "version", &text);
	if (st)
		return st;
	return strcmp(text, "1") == 0 ? VN_OK : vn_yaml_fail(y, "version '%.40s'; this vernier reads version 1", text);
}

typedef struct yaml_document {
	vn_yaml               *y;
	const vn_yaml_section *section;
	int                    n;
	void                  *context;
	unsigned               seen; /* bit 0: version; bit i + 1: section i */
} yaml_document;

static vn_status fail_unknown(const yaml_document *d, const char *key, int line, int column)
{
	char list[256] = "version";
	for (int i = 0; i < d->n; i++)
		vn_text_add(list, sizeof list, "%s%s", i < d->n - 1 ? ", " : " or ", d->section[i].name);
	return vn_yaml_fail_at(d->y, line, column, "unknown key '%.60s'; expected %s", key, list);
}

static vn_status read_section(void *context, const char *key, int line, int column)
{
	yaml_document *d = context;
	int            i = -1; /* version */
	if (strcmp(key, "version") != 0)
		for (i = 0; i < d->n && strcmp(d->section[i].name, key) != 0; i++) {}
	if (i == d->n)
		return fail_unknown(d, key, line, column);
	if (d->seen & 1u << (i + 1))
		return vn_yaml_fail_at(d->y, line, column, "%s twice", key);
	d->seen |= 1u << (i + 1);
	return i < 0 ? read_version(d->y) : d->section[i].read(d->context);
}

vn_status vn_yaml_document(vn_yaml *y, const char *file, const vn_yaml_section *section, int n, void *context)
{
	yaml_document d = { .y = y, .section = section, .n = n, .context = context };
	vn_status     st;
	if ((st = vn_yaml_next(y)) || (st = vn_yaml_next(y)))
		return st; /* the stream starts, the document starts */
	if (y->event.type == YAML_STREAM_END_EVENT)
		return vn_yaml_fail_at(y, 1, 1, "empty; the file starts with version: 1");
	if ((st = vn_yaml_next(y)) || (st = vn_yaml_map(y, "a map that starts with version: 1", read_section, &d)) ||
	    (st = vn_yaml_next(y)) || (st = vn_yaml_next(y)))
		return st;
	if (y->event.type != YAML_STREAM_END_EVENT)
		return vn_yaml_fail(y, "a second document; a file holds one document");
	return d.seen & 1u ? VN_OK : vn_yaml_fail_at(y, 1, 1, "no version; %s starts with version: 1", file);
}

/* ---- text ------------------------------------------------------------------- */

/* libyaml reports the byte offset of bad UTF-8, not the line. */
static vn_status check_utf8(const char *path, const char *text, size_t n, vn_error *err)
{
	int          line = 1, column = 1;
	const size_t good = vn_utf8_good(text, n);
	for (size_t i = 0; good < n && i < good; i += (size_t)vn_utf8_length(text + i, good - i)) {
		column = text[i] == '\n' ? 1 : column + 1;
		line += text[i] == '\n';
	}
	return good == n ? VN_OK
	                 : vn_fail(err, VN_ERR_FORMAT, "%s:%d:%d: not UTF-8 (byte 0x%02x)", path, line, column,
	                           (unsigned)(unsigned char)text[good]);
}

vn_status vn_yaml_open(const char *path, const char *text, size_t n, const char *what, vn_yaml **out, vn_error *err)
{
	const vn_status st = check_utf8(path, text, n, err);
	vn_yaml        *y = *out = st ? NULL : vn_alloc_zero(1, sizeof *y);
	if (st)
		return st;
	vn_alloc_check(yaml_parser_initialize(&y->parser) ? y : NULL);
	y->path = path;
	y->what = what;
	y->err = err;
	yaml_parser_set_encoding(&y->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&y->parser, (const unsigned char *)text, n);
	return VN_OK;
}

void vn_yaml_close(vn_yaml *y)
{
	if (!y)
		return;
	if (y->has_event)
		yaml_event_delete(&y->event);
	yaml_parser_delete(&y->parser);
	free(y);
}
