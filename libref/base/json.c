/* json.c: see json.h. */
#include "libref/base/json.h"

#include "libref/base/trouble.h"
#include "libref/base/utf8.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local bool lost;

void vn_json_lose(void)
{
	lost = true;
	vn_trouble_note(NULL);
}

bool vn_json_lost(void)
{
	const bool was = lost;
	lost = false;
	return was;
}

static void *allocate(size_t n)
{
	void *p = malloc(n);
	if (!p)
		vn_json_lose();
	return p;
}

/* Before main: Jansson wants to know it before it is first called. */
__attribute__((constructor)) static void watch(void)
{
	json_set_alloc_funcs(allocate, free);
}

static void say_why(json_error_t *why)
{
	if (why) {
		*why = (json_error_t) { .line = -1, .column = -1 };
		strcpy(why->text, "not enough memory");
	}
}

json_t *vn_json_load(const char *text, size_t bytes, size_t flags, json_error_t *why)
{
	const bool before = vn_json_lost();
	json_t    *j = json_loadb(text, bytes, flags, why);

	if (vn_json_lost()) {
		json_decref(j);
		j = NULL;
		say_why(why);
	}
	lost = before;
	return j;
}

json_t *vn_json_parse(const char *text, size_t flags)
{
	return text ? vn_json_load(text, strlen(text), flags, NULL) : NULL;
}

char *vn_json_dump(const json_t *j, size_t flags)
{
	char *text = j ? json_dumps(j, flags) : NULL;

	if (vn_json_lost()) {
		free(text);
		text = NULL;
	}
	return text;
}

/* Jansson hands over well-formed UTF-8, no character in two pieces, and what is none of ASCII only inside strings. Its
 * own newlines between values come here as well. */
static int put_printable(const char *text, size_t n, void *to)
{
	FILE *out = to;
	int   marks = 0;

	for (size_t at = 0; at < n;) {
		const size_t plain = vn_utf8_plain(text + at, n - at, &marks);
		fwrite(text + at, 1, plain, out);
		if ((at += plain) == n)
			break;
		const int k = vn_utf8_length(text + at, n - at);
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

bool vn_json_print(const json_t *j, FILE *out, size_t flags)
{
	/* Nothing of what is broken already. */
	bool good = j && !lost && json_dump_callback(j, put_printable, out, flags) == 0;
	return !vn_json_lost() && good;
}
