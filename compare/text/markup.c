/* markup.c: see markup.h. */
#include "compare/text/markup.h"

#include "libref/base/alloc.h"
#include "libref/base/freed.h"
#include "libref/base/say.h"
#include "libref/base/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Length of the vn_utf8_code escape at text; 0: none. */
static size_t code_length(const char *text)
{
	static const char hex[] = "0123456789abcdef";
	if (text[0] != '\\')
		return 0;
	if (text[1] == 'x' && strspn(text + 2, hex) >= 2)
		return 4;
	if (text[1] != 'u' || text[2] != '{')
		return text[1] && strchr("nrt", text[1]) ? 2 : 0;
	const size_t n = strspn(text + 3, hex);
	return n >= 1 && n <= 6 && text[3 + n] == '}' ? n + 4 : 0;
}

static void put_xml(FILE *out, char c)
{
	switch (c) {
	case '<': fputs("&lt;", out); break;
	case '>': fputs("&gt;", out); break; /* "]]>" too */
	case '&': fputs("&amp;", out); break;
	case '"': fputs("&quot;", out); break;
	case '\'': fputs("&#39;", out); break;
	default: fputc(c, out);
	}
}

/* marked: escapes are put into an element of their own. */
static void xml_bytes(FILE *out, const char *text, size_t n, bool marked)
{
	VN_FREED char *clean = vn_alloc_check(vn_utf8_shown(text, n));
	for (const char *c = clean; *c; c++) {
		const size_t k = marked ? code_length(c) : 0;
		if (k) {
			fprintf(out, "<span class=\"unprintable\">%.*s</span>", (int)k, c);
			c += k - 1;
		} else {
			put_xml(out, *c);
		}
	}
}

static bool is_number(const char *text)
{
	char *end;
	strtod(text, &end);
	return end != text && !*end;
}

void vn_csv_text(FILE *out, const char *text)
{
	VN_FREED char *clean = vn_alloc_check(vn_utf8_shown(text, strlen(text)));
	const bool     formula = *clean && strchr("=+-@", *clean) && !is_number(clean), quoted = strpbrk(clean, ",\"\n\r");
	fprintf(out, "%s%s", quoted ? "\"" : "", formula ? "'" : "");
	for (const char *c = clean; *c; c++)
		fprintf(out, *c == '"' ? "\"\"" : "%c", *c);
	if (quoted)
		fputc('"', out);
}

void vn_html_text(FILE *out, const char *text)
{
	xml_bytes(out, text, strlen(text), true);
}

/* Writes the format up to the next %s. Returns what follows it; NULL: there is none. */
static const char *put_until(FILE *out, const char *format)
{
	const char *at = strstr(format, "%s");

	fwrite(format, 1, at ? (size_t)(at - format) : strlen(format), out);
	return at ? at + 2 : NULL;
}

void vn_html_say(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	while ((format = put_until(out, format)))
		vn_html_text(out, va_arg(args, const char *));
	va_end(args);
}

void vn_xml_text(FILE *out, const char *text)
{
	xml_bytes(out, text, strlen(text), false);
}

void vn_xml_lines(FILE *out, const char *text)
{
	for (;;) {
		const size_t n = strcspn(text, "\n");
		xml_bytes(out, text, n, false);
		if (!text[n])
			return;
		fputc('\n', out);
		text += n + 1;
	}
}

/* The longest run of backticks. A code span ends only at a run of its own length. */
static int longest_run(const char *text)
{
	int longest = 0, run = 0;
	for (; *text; text++) {
		run = *text == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

void vn_markdown_code(FILE *out, const char *text, size_t most, int cell)
{
	VN_FREED char *clean = vn_alloc_check(vn_utf8_shown(text, strlen(text)));
	size_t         n = strlen(clean);
	if (n > most) {
		for (n = most; n > 0 && ((unsigned char)clean[n] & 0xC0) == 0x80; n--)
			; /* do not cut inside a character */
		clean[n] = 0;
	}
	const int   ticks = longest_run(clean) + 1;
	const char *pad = *clean == '`' || (n && clean[n - 1] == '`') || n == 0 ? " " : "";
	for (int i = 0; i < ticks; i++)
		fputc('`', out);
	fputs(pad, out);
	for (const char *c = clean; *c; c++)
		/* behind a backslash, an escaped | ends the cell */
		fprintf(out, cell && *c == '|' ? c > clean && c[-1] == '\\' ? "\\u{7c}" : "\\|" : "%c", *c);
	fputs(pad, out);
	for (int i = 0; i < ticks; i++)
		fputc('`', out);
}

void vn_markdown_say(FILE *out, size_t most, int cell, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	while ((format = put_until(out, format)))
		vn_markdown_code(out, va_arg(args, const char *), most, cell);
	va_end(args);
}

void vn_markdown_text(FILE *out, const char *text, int cell)
{
	size_t plain = 0;

	while (text[plain] && ((unsigned char)text[plain] >= 0x80 || isalnum((unsigned char)text[plain]) ||
	                       strchr(" .,;:()%+-=/'\"", text[plain])))
		plain++;
	if (text[plain] || strstr(text, "://") || strstr(text, "www."))
		vn_markdown_code(out, text, SIZE_MAX, cell);
	else
		vn_say(out, "%s", text);
}

/* A line of tildes would end the fence. We never print one, and one from elsewhere is dropped. */
void vn_markdown_fence(FILE *out, const char *lines)
{
	static const char fence[] = "~~~~~~~~";
	fprintf(out, "%stext\n", fence);
	while (*lines) {
		const size_t n = strcspn(lines, "\n");
		char        *clean = strspn(lines, " ~") < n ? vn_utf8_shown(lines, n) : NULL;
		if (clean)
			fprintf(out, "%s\n", clean);
		free(clean);
		lines += lines[n] ? n + 1 : n;
	}
	fprintf(out, "%s\n", fence);
}

void vn_markdown_rows(FILE *out, size_t room, vn_markdown_row *print, const void *ctx, int n, int *left)
{
	vn_text_stream rows;
	size_t         fits = 0;
	FILE          *to = vn_alloc_stream(&rows);

	for (int i = 0; i < n; i++) {
		if (!print(ctx, i, to))
			continue;
		if (fflush(to) != 0 || rows.bytes >= room)
			break;
		fits = rows.bytes;
		--*left;
	}
	fwrite(vn_alloc_streamed(&rows), 1, fits, out);
	free(rows.text);
}
