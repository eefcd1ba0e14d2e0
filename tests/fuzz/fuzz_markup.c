/* fuzz_markup.c: any text embedded in XML, HTML or Markdown: none of it acts as markup, and it can
 * be read back.
 *
 * Input: how much a code span may show, whether it stands in a table, and the text. */
#include "compare/text/markup.h"
#include "libref/base/utf8.h"
#include "tests/fuzz/mutate.h"

typedef struct page {
	FILE  *f;
	char  *text;
	size_t n;
} page;

static page *open_page(void)
{
	static page p;
	p = (page) { 0 };
	if (!(p.f = open_memstream(&p.text, &p.n)))
		exit(2);
	return &p;
}

static const char *close_page(page *p)
{
	if (fclose(p->f) != 0)
		exit(2);
	return p->text;
}

/* Decodes the five escaped characters in place. */
static void unquote(char *text)
{
	static const struct {
		const char *name;
		char        c;
	} known[] = { { "&lt;", '<' }, { "&gt;", '>' }, { "&amp;", '&' }, { "&quot;", '"' }, { "&#39;", '\'' } };
	char *to = text;

	for (const char *p = text; *p;) {
		MUST(!strchr("<>\"'", *p));
		size_t k = 0;
		while (k < 5 && strncmp(p, known[k].name, strlen(known[k].name)) != 0)
			k++;
		MUST(k < 5 || *p != '&');
		*to++ = k < 5 ? known[k].c : *p;
		p += k < 5 ? strlen(known[k].name) : 1;
	}
	*to = '\0';
}

static void check_xml(const char *text)
{
	const size_t n = strlen(text);
	page        *p = open_page();

	vn_xml_text(p->f, text);
	close_page(p);
	MUST(n == 0 || fuzz_one_line(p->text));
	MUST(vn_utf8_good(p->text, p->n) == p->n);
	unquote(p->text);
	free(p->text);
}

static size_t lines_of(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void check_xml_lines(const char *text)
{
	page *p = open_page();

	vn_xml_lines(p->f, text);
	MUST(lines_of(close_page(p)) == lines_of(text));
	unquote(p->text);
	free(p->text);
}

static size_t run(const char *text, size_t at)
{
	return strspn(text + at, "`");
}

/* It opens with some backticks; the next run of equal length must end it. */
static void check_code(const char *text, size_t most, int cell)
{
	page *p = open_page();

	vn_markdown_code(p->f, text, most, cell);
	close_page(p);
	MUST(fuzz_one_line(p->text));
	const size_t ticks = run(p->text, 0);
	size_t       at = ticks;
	MUST(ticks > 0);
	while (p->text[at] && !(p->text[at] == '`' && run(p->text, at) == ticks))
		at += p->text[at] == '`' ? run(p->text, at) : 1;
	MUST(p->text[at] && !p->text[at + ticks]);
	for (size_t i = 0; cell && p->text[i]; i++)
		MUST(p->text[i] != '|' || (i > 0 && p->text[i - 1] == '\\'));
	free(p->text);
}

/* Between its two fences no line is one. */
static void check_fence(const char *text)
{
	page *p = open_page();

	vn_markdown_fence(p->f, text);
	close_page(p);
	const size_t lines = lines_of(p->text);
	size_t       i = 0;
	MUST(lines >= 2 && vn_utf8_good(p->text, p->n) == p->n);
	for (char *line = p->text, *next; *line; line = next, i++) {
		next = strchr(line, '\n');
		MUST(next);
		*next++ = '\0';
		const size_t blank = strspn(line, " "), tildes = strspn(line + blank, "~");
		MUST((i == 0 || i == lines - 1) || tildes < 3 || line[blank + tildes]);
	}
	free(p->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	char *text = fuzz_text(data + 2, size - 2);
	check_xml(text);
	check_xml_lines(text);
	check_code(text, data[0] ? data[0] : 100000, data[1] & 1);
	check_fence(text);
	free(text);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = { "\x20\x01<a href='x'>&amp;\"", "\x7f\x01``a|b`", "\x05\x01~~~~~~~~\n ~~~\nx\n",
		                                 "\x40\x02\x1b[2J\xff\xe2\x80\xae]]>\n\n" };

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
