/* fuzz_scenario.c: any bytes as a file of prompts: refused with one line, or read as prompts with
 * unique names that can be file names, each with a text or ids. */
#include "capture/run/scenario.h"
#include "tests/fuzz/mutate.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char  path[64];
	vn_scenario *s = NULL;
	vn_error     err = { "" };
	int          n = 0;

	if (!*path)
		snprintf(path, sizeof path, "/proc/self/fd/%d", memfd_create("prompts", 0));
	FILE *f = fopen(path, "w");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
		exit(2);
	if (vn_scenarios_read(path, &s, &n, &err)) {
		MUST(fuzz_one_line(err.text) && !s && n == 0);
		return 0;
	}
	MUST(n > 0);
	for (int i = 0; i < n; i++) {
		MUST(*s[i].name && *s[i].name != '.' && !strchr(s[i].name, '/') && strlen(s[i].name) <= 200);
		MUST(!s[i].text == (s[i].ids != NULL) && s[i].line >= 1 && (i == 0 || s[i].line > s[i - 1].line));
		MUST(s[i].decode >= -1 && s[i].seed >= -1 && s[i].temperature <= 1000);
		for (int64_t k = 0; s[i].ids && k < s[i].n; k++)
			MUST(s[i].ids[k] >= 0);
		for (int k = 0; k < i && k < 100; k++)
			MUST(strcmp(s[i].name, s[k].name) != 0);
	}
	vn_scenarios_free(s, n);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = {
		"one\r\n\ntwo words\n",
		"{\"name\": \"a\", \"prompt\": \"x\", \"decode\": 3, \"temperature\": 0.5, \"seed\": 1}\n{\"ids\": [1, 2, 3]}\n"
	};

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
