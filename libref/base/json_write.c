/* json_write.c: see json_write.h. */
#include "libref/base/json_write.h"

#include "libref/base/utf8.h"

/* Jansson hands over well-formed UTF-8, no character in two pieces, and what is none of ASCII only inside strings. Its
 * own newlines between values come here as well. */
static int put(const char *text, size_t n, void *to)
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

bool vn_json_write(const json_t *j, FILE *out, size_t flags)
{
	return j && json_dump_callback(j, put, out, flags) == 0;
}
