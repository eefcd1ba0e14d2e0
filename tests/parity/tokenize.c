/* tokenize.c: a program for the scripts that compare tokenizers: texts to ids and back.
 *
 *   tokenize DIR|FILE.json [--plain] [--time] < TEXTS
 *
 * TEXTS: for each text, its length in four bytes, little-endian, and its bytes. Prints the ids of
 * each text on a line, or "error: ..."; aborts when the ids of a text do not give its bytes back
 * although nothing in the tokenizer may change them (--exact). --plain: adds no tokens around a
 * text. --time: no ids, but bytes and seconds on stderr. */
#include "libref/base/progress.h"
#include "libref/base/map.h"
#include "tests/support/token_bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vn_status open_any(const char *path, vn_tokenizer **t, vn_error *err)
{
	const size_t n = strlen(path);
	char        *text;
	size_t       bytes;
	vn_status    st;

	if (n < 5 || strcmp(path + n - 5, ".json") != 0)
		return vn_tokenizer_open(path, t, err);
	if ((st = vn_read_text(path, (size_t)256 << 20, &text, &bytes, err)))
		return st;
	st = vn_tokenizer_read_json(path, text, bytes, t, err);
	free(text);
	return st;
}

/* The ids must give the bytes back. */
static void check_back(const vn_tokenizer *t, const char *text, size_t bytes, const int32_t *ids, int64_t n)
{
	size_t at = 0, k;

	for (int64_t i = 0; i < n; i++) {
		const char *piece = token_bytes(t, ids[i], &k);
		if (!piece || k > bytes - at || memcmp(piece, text + at, k) != 0)
			abort();
		at += k;
	}
	if (at != bytes)
		abort();
}

int main(int argc, char **argv)
{
	bool          plain = false, timed = false, exact = false;
	const char   *path = NULL;
	vn_tokenizer *t = NULL;
	vn_error      err = { "" };
	uint8_t       head[4];
	double        seconds = 0;
	uint64_t      total = 0, total_ids = 0;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--plain") == 0)
			plain = true;
		else if (strcmp(argv[i], "--time") == 0)
			timed = true;
		else if (strcmp(argv[i], "--exact") == 0)
			exact = true;
		else
			path = argv[i];
	const double opening = vn_seconds();
	if (!path || open_any(path, &t, &err)) {
		fprintf(stderr, "tokenize: %s\n", path ? err.text : "a directory or a file is needed");
		return 2;
	}
	const double opened = vn_seconds() - opening;
	while (fread(head, 1, 4, stdin) == 4) {
		const size_t bytes = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
		char        *text = malloc(bytes + 1);
		int32_t     *ids;
		int64_t      n;
		if (!text || fread(text, 1, bytes, stdin) != bytes)
			return 2;
		const double start = vn_seconds();
		if (vn_tokenizer_encode(t, text, bytes, !plain, &ids, &n, &err))
			printf("error: %s", err.text);
		seconds += vn_seconds() - start;
		total += bytes;
		total_ids += (uint64_t)n;
		for (int64_t i = 0; !timed && i < n; i++)
			printf("%s%" PRId32, i ? " " : "", ids[i]);
		if (exact)
			check_back(t, text, bytes, ids, n);
		if (!timed)
			putchar('\n');
		free(ids);
		free(text);
	}
	if (timed)
		fprintf(stderr, "opened in %.3f s; %" PRIu64 " bytes, %" PRIu64 " tokens in %.3f s\n", opened, total, total_ids,
		        seconds);
	vn_tokenizer_close(t);
	return 0;
}
