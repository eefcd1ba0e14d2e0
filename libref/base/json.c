/* json.c: see json.h. */
#include "libref/base/json.h"

#include "libref/base/trouble.h"
#include "libref/base/utf8.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool lost; /* Jansson, or a function here, ran out of memory since the last take_lost */

/* Sets that flag: memory ran out outside Jansson, and a value lacks a part. */
static void set_lost(void)
{
	lost = true;
	vn_trouble_note(NULL);
}

json_t *vn_json_text(const char *s)
{
	json_t *j = s ? json_string(s) : json_null();
	if (j)
		return j;
	VN_FREED char *clean = vn_utf8_escape(s, strlen(s));
	if (!clean)
		set_lost();
	j = json_string(clean ? clean : "");
	return j;
}

static bool take_lost(void)
{
	const bool was = lost;
	lost = false;
	return was;
}

static _Thread_local jmp_buf *way_out; /* during a load or dump; NULL while a value is built */

static void *allocate_bytes(size_t n)
{
	void *p = malloc(n);
	if (!p) {
		set_lost();
		if (way_out)
			longjmp(*way_out, 1);
	}
	return p;
}

/* Runs before main, because Jansson must know its allocator before its first call. */
__attribute__((constructor)) static void set_allocator(void)
{
	json_set_alloc_funcs(allocate_bytes, free);
}

static void say_why(const char *what, json_error_t *why)
{
	if (why) {
		*why = (json_error_t) { .line = -1, .column = -1 };
		strcpy(why->text, what);
	}
}

/* Jansson passes valid UTF-8, never splits a character, and puts non-ASCII only into strings. The
 * newlines it adds between values arrive here too. */
static int put_printable(const char *text, size_t n, void *to)
{
	FILE *out = to;
	int   marks = 0;

	for (size_t at = 0; at < n;) {
		const size_t plain = vn_utf8_plain(text + at, n - at, &marks);
		fwrite(text + at, 1, plain, out);
		if ((at += plain) == n)
			break;
		const int      k = vn_utf8_length(text + at, n - at);
		const uint32_t point = k ? vn_utf8_point(text + at) : 0xfffd;
		if (text[at] == '\n')
			fputc('\n', out);
		else if (point < 0x10000)
			fprintf(out, "\\u%04x", point);
		else
			fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (point >> 10), 0xdc00 + (point & 0x3ff));
		at += k ? (size_t)k : 1;
	}
	return ferror(out) ? -1 : 0;
}

/* ---- how much a tree takes ------------------------------------------------------------------- */

/* Bytes that Jansson 2.14 allocates at most, with malloc's own: for an object, a list, a member or
 * an element in its table, a string beside its text. */
enum { OBJECT = 256, LIST = 192, MEMBER = 128, ELEMENT = 64, STRING = 96 };

/* Returns where a string ends that begins at `at`: behind its quotation mark, or at n. */
static size_t skip_string(const char *text, size_t n, size_t at)
{
	for (at++; at < n && text[at] != '"'; at++)
		at += text[at] == '\\' && at + 1 < n;
	return at < n ? at + 1 : n;
}

/* What the first value of the text takes at most as a tree; counted until it is too much. */
static size_t count_tree(const char *text, size_t n)
{
	size_t sum = ELEMENT;
	int    depth = 0;

	for (size_t at = 0; at < n && sum <= VN_JSON_MOST;) {
		const char   c = text[at];
		const size_t from = at;
		at = c == '"' ? skip_string(text, n, at) : at + 1;
		switch (c) {
		case '{': depth++, sum += OBJECT; break;
		case '[': depth++, sum += LIST; break;
		case ':': sum += MEMBER; break;
		case ',': sum += ELEMENT; break;
		case '"': sum += STRING + (at - from); break;
		case '}':
		case ']': depth--; break;
		default: break;
		}
		if (depth <= 0 && strchr("\"}],:", c)) /* the value has ended, or is none */
			break;
	}
	return sum;
}

/* The next three leave Jansson by longjmp if memory runs out; the result then keeps its first
 * value. */

json_t *vn_json_load(const char *text, size_t bytes, size_t flags, json_error_t *why)
{
	json_t *volatile loaded = NULL;
	jmp_buf here;

	if (count_tree(text, bytes) > VN_JSON_MOST) {
		say_why("its values would take more than 1 GiB of memory", why);
		return NULL;
	}
	const bool before = take_lost();
	way_out = &here;
	if (setjmp(here) == 0)
		loaded = json_loadb(text, bytes, flags, why);
	else
		say_why("not enough memory", why);
	way_out = NULL;
	lost = before;
	return loaded;
}

/* The next character that is no white space; 0: none. */
static char skip_space(vn_json_members *m)
{
	while (m->at < m->bytes && memchr(" \t\n\r", m->text[m->at], 4))
		m->at++;
	return m->at < m->bytes ? m->text[m->at] : 0;
}

json_t *vn_json_value(vn_json_members *m, json_error_t *why)
{
	json_t *v = vn_json_load(m->text + m->at, m->bytes - m->at,
	                         JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, why);
	if (v)
		m->at += (size_t)why->position;
	else
		why->position += (int)m->at;
	return v;
}

/* Goes to the name of the next member. Returns what is wrong there; NULL: nothing. *last: there is
 * no further one. */
static const char *find_name(vn_json_members *m, bool *last)
{
	/* Jansson passes over a NUL behind a number, and does not count it. */
	const char *nul = m->begun || !m->bytes ? NULL : memchr(m->text, 0, m->bytes);
	char        c = skip_space(m);

	*last = m->begun && c == '}';
	if (nul) {
		m->at = (size_t)(nul - m->text);
		return "NUL byte";
	}
	if (c == (m->begun ? ',' : '{')) {
		m->at++;
		c = skip_space(m);
		*last = !m->begun && c == '}';
		m->begun = true;
		if (!*last)
			return c == '"' ? NULL : "string or '}' expected";
	}
	if (!*last)
		return m->begun ? "',' or '}' expected" : "'{' expected";
	m->at++;
	skip_space(m);
	return m->at < m->bytes ? "end of file expected" : NULL;
}

static void say_wrong(const vn_json_members *m, const char *wrong, json_error_t *why)
{
	strcpy(why->text, wrong);
	why->position = (int)m->at;
}

bool vn_json_key(vn_json_members *m, json_t **name, json_error_t *why)
{
	bool        last;
	const char *wrong = find_name(m, &last);

	*why = (json_error_t) { .line = -1, .column = -1 };
	*name = NULL;
	if (!wrong && !last && (*name = vn_json_value(m, why))) {
		wrong = skip_space(m) == ':' ? NULL : "':' expected";
		m->at += !wrong;
	}
	if (wrong) {
		say_wrong(m, wrong, why);
		json_decref(*name);
		*name = NULL;
	}
	return *name != NULL;
}

bool vn_json_next(vn_json_members *m, json_t **name, json_t **value, json_error_t *why)
{
	*value = NULL;
	if (vn_json_key(m, name, why) && (*value = vn_json_value(m, why)))
		return true;
	json_decref(*name);
	*name = NULL;
	return false;
}

bool vn_json_element(vn_json_members *m, bool *begun, json_t **value, json_error_t *why)
{
	const char before = *begun ? ',' : '[';

	*why = (json_error_t) { .line = -1, .column = -1 };
	*value = NULL;
	const char c = skip_space(m);
	const bool first = !*begun;
	*begun = true;
	if (c != before && (first || c != ']')) {
		say_wrong(m, first ? "'[' expected" : "',' or ']' expected", why);
		return false;
	}
	m->at++;
	if (c == ']')
		return false;
	if (first && skip_space(m) == ']') {
		m->at++;
		return false;
	}
	return (*value = vn_json_value(m, why)) != NULL;
}

char *vn_json_dump(const json_t *j, size_t flags)
{
	char *volatile dumped = NULL;
	jmp_buf here;

	if (take_lost() || !j) /* a value that lost a part must not be dumped */
		return NULL;
	way_out = &here;
	if (setjmp(here) == 0)
		dumped = json_dumps(j, flags);
	way_out = NULL;
	take_lost();
	return dumped;
}

bool vn_json_print(const json_t *j, FILE *out, size_t flags)
{
	volatile bool printed = false;
	jmp_buf       here;

	if (take_lost() || !j)
		return false;
	way_out = &here;
	if (setjmp(here) == 0)
		printed = json_dump_callback(j, put_printable, out, flags) == 0;
	way_out = NULL;
	take_lost();
	return printed;
}

json_t *vn_json_parse(const char *text, size_t flags)
{
	return text ? vn_json_load(text, strlen(text), flags, NULL) : NULL;
}

json_t *vn_json_field(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);
	return v && !json_is_null(v) ? v : NULL;
}
