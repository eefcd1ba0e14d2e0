/* fuzz_utf8.c: any bytes as UTF-8, as a line that is shown, as a text that is composed,
 * and in byte-level characters.
 *
 * libunistring must agree about what is well-formed; shown text can be read back; composed text
 * stays composed. */
#include "libref/base/utf8.h"
#include "libref/text/bytelevel.h"
#include "libref/text/unicode.h"
#include "tests/fuzz/mutate.h"

#include <stdbool.h>
#include <unistr.h>

static void check_characters(const char *text, size_t size)
{
	for (size_t at = 0; at < size; at++) {
		ucs4_t    point;
		const int n = vn_utf8_length(text + at, size - at),
				  want = u8_mbtoucr(&point, (const uint8_t *)text + at, size - at);
		MUST(n == (want > 0 ? want : 0));
		if (n)
			MUST(vn_utf8_point(text + at) == point && vn_utf8_length_before(text, at + (size_t)n) == n);
	}
	const size_t   good = vn_utf8_good(text, size), bad = vn_utf8_bad(text, size);
	const uint8_t *stop = u8_check((const uint8_t *)text, size);
	MUST(good == (stop ? (size_t)(stop - (const uint8_t *)text) : size));
	MUST(!good == (bad > 0 || size == 0) && (bad == size || vn_utf8_length(text + bad, size - bad)));
}

static void check_clean(const char *text, size_t size)
{
	char        *copy = fuzz_text((const uint8_t *)text, size);
	const size_t n = strlen(copy);

	vn_utf8_clean(copy);
	MUST(strlen(copy) == n && vn_utf8_good(copy, n) == n);
	for (size_t i = 0; i < n; i++)
		MUST(copy[i] == text[i] || (copy[i] == '?' && (text[i] & 0x80)));
	char *shown = malloc(8 * n + 16), *again = malloc(8 * n + 16); /* a byte is shown in four, a character in ten */
	MUST(shown && again);
	strcpy(shown, copy);
	vn_text_clean(shown, 8 * n + 16);
	MUST(n == 0 || fuzz_one_line(shown));
	strcpy(again, shown);
	vn_text_clean(again, 8 * n + 16);
	MUST(strcmp(shown, again) == 0);
	free(again);
	free(shown);
	free(copy);
}

static void check_escape(const char *text, size_t size)
{
	char *line = vn_utf8_escape(text, size), *bytes = fuzz_text((const uint8_t *)text, size);

	MUST(line && vn_utf8_good(line, strlen(line)) == strlen(line) && (size == 0 || fuzz_one_line(line)));
	MUST(vn_utf8_unescape(line) == size && memcmp(line, text, size) == 0);
	const size_t n = strlen(bytes), m = vn_utf8_unescape(bytes); /* of any text, too */
	MUST(m <= n);
	free(line);
	free(bytes);
}

static void check_composed(const char *text, size_t size)
{
	const char *once, *twice;
	char       *owned, *again;
	size_t      n, m;

	vn_nfc(text, size, &once, &n, &owned);
	MUST(vn_utf8_good(once, n) == n && n <= 3 * size);
	vn_nfc(once, n, &twice, &m, &again);
	MUST(m == n && memcmp(once, twice, n) == 0);
	free(again);
	free(owned);
}

static void check_bytelevel(const char *text, size_t size)
{
	char  *to = malloc(2 * size + 1), *back = malloc(2 * size + 1);
	size_t n;

	if (!to || !back)
		exit(2);
	const size_t m = vn_bytelevel_write(to, text, size);
	MUST(m <= 2 * size && vn_utf8_good(to, m) == m && vn_bytelevel_read(back, &n, to, m) && n == size &&
	     memcmp(back, text, size) == 0);
	if (vn_bytelevel_read(back, &n, text, size)) /* then it is one's characters */
		MUST(n <= size && vn_bytelevel_write(to, back, n) == size && memcmp(to, text, size) == 0);
	free(to);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = size ? (const char *)data : "";

	check_characters(text, size);
	check_clean(text, size);
	check_escape(text, size);
	check_composed(text, vn_utf8_good(text, size));
	check_bytelevel(text, size);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = { "abc\\n\n\t\\u{200d}",
		                                 "e\xcc\x81\xcc\xa3",
		                                 "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab",
		                                 "\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80",
		                                 "\xf0\x9f\x91\xa8\xe2\x80\x8d",
		                                 "\xc4\xa0hello\xc5\x83",
		                                 "\\x7f\\xff\\u{10ffff}" };

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
