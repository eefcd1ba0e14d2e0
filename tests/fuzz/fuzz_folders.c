/* fuzz_folders.c: any bytes as the summary of two folders, or of a part: refused with one line, or
 * read as a summary that is written in the same words again, and that cannot be joined with a copy
 * of itself. */
#include "compare/folders/together.h"
#include "tests/fuzz/mutate.h"

#include <sys/mman.h>
#include <unistd.h>

static char path[2][64];

static void prepare(void)
{
	for (int i = 0; !*path[1] && i < 2; i++)
		snprintf(path[i], sizeof path[i], "/proc/self/fd/%d", memfd_create("summary", 0));
}

static void write_file(const char *to, const void *data, size_t size)
{
	FILE *f = fopen(to, "w");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
		exit(2);
}

static char *written(const vn_together *t, size_t *n)
{
	vn_error err = { "" };
	char    *text = NULL;
	FILE    *to = open_memstream(&text, n);
	if (!to || vn_together_json(t, to, &err) || fclose(to) != 0)
		exit(2);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_together t[2], whole = { .sides = 0 };
	vn_error    err = { "" };
	size_t      n[2];

	prepare();
	write_file(path[0], data, size);
	if (vn_together_read(path[0], &t[0], &err)) {
		MUST(fuzz_one_line(err.text));
		vn_together_free(&t[0]);
		return 0;
	}
	MUST(t[0].part.index <= t[0].part.of);
	char *first = written(&t[0], &n[0]);
	write_file(path[1], first, n[0]);
	MUST(!vn_together_read(path[1], &t[1], &err));
	char *second = written(&t[1], &n[1]);
	MUST(n[0] == n[1] && memcmp(first, second, n[0]) == 0);
	MUST(vn_together_status(&t[0]) == vn_together_status(&t[1]));
	const char *const paths[] = { "a", "b" };
	MUST(vn_together_join(t, paths, 2, &whole, &err) && fuzz_one_line(err.text)); /* whole, or the same part twice */
	vn_together_free(&whole);
	if (!vn_together_join(t, paths, 1, &whole, &err)) /* part 1 of 1 */
		MUST(whole.n == t[0].n && whole.part.of <= 1);
	vn_together_free(&whole);
	free(first);
	free(second);
	vn_together_free(&t[0]);
	vn_together_free(&t[1]);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
#define HEAD "{\"schema\":\"vernier-folders/1\",\"verdict\":\"outside\",\"reference\":\"refs\",\"candidate\":\"cands\","
#define REST \
	"\"work\":\"0123456789abcdef0123456789abcdef\",\"total\":2,\"ignored\":[{\"folders\":0,\"other_files\":1}," \
	"{\"folders\":2,\"other_files\":0}],\"pairs\":[{\"name\":\"a.h5\",\"in\":\"both\",\"status\":1," \
	"\"verdict\":\"outside\",\"words\":\"first: q_rope\"},{\"name\":\"b.h5\",\"in\":\"reference\",\"status\":1," \
	"\"verdict\":\"outside\",\"words\":\"x\"}],\"next\":[]}"
	static const char *const seeds[] = { HEAD REST, HEAD "\"part\":{\"index\":1,\"of\":1}," REST,
		                                 HEAD "\"part\":{\"index\":2,\"of\":3}," REST,
		                                 HEAD
		                                 "\"part\":{\"index\":1,\"of\":2},\"saw\":[\"0123456789abcdef a.h5\"]," REST };

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
