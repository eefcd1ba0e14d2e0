/* fuzz_ids.c: any text as a list of token ids. It is refused with one line, or gives a list of all
 * its numbers, none negative. */
#include "capture/run/arguments.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char    *text = malloc(size + 1);
	int32_t *ids = NULL;
	int64_t  n = 0;
	vn_error e = { "" };

	if (!text)
		exit(2);
	memcpy(text, data, size);
	text[size] = '\0';
	if (*text != '@') { /* a file name is not under test */
		if (vn_arguments_read_ids("--ids", text, &ids, &n, &e)) {
			if (!fuzz_one_line(e.text) || ids)
				abort();
		} else {
			if (n < 1 || !ids)
				abort();
			for (int64_t i = 0; i < n; i++)
				if (ids[i] < 0)
					abort();
		}
	}
	free(ids);
	free(text);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = { "1,2,3", "151935,0,7,2147483647", "12 , 4\n5" };

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
