/* record.c MODEL DIR: an engine that records itself with vernier_record.h, and no library.
 *
 *     cc -std=c99 record.c -lm -o record && ./record MODEL dump
 *     vernier import dump -o cand.h5
 */
#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_record.h"

#include "tiny_mistral.h"

static void put_tensor(void *recording, const char *name, const char *dims, const float *x, int rank,
                       const int64_t *shape)
{
	vernier_record_put((vernier_record *)recording, name, dims, "f32", x, rank, shape);
}

int main(int argc, char **argv)
{
	static const int32_t ids[] = { 12, 345, 6, 78, 9, 10, 111, 213, 14, 415, 16, 17, 318, 19, 20, 21, 222 };
	const int            n = (int)(sizeof ids / sizeof *ids);
	vernier_record       rec;
	size_t               bytes;
	char                *config = argc == 3 ? tiny_read(argv[1], "config.json", &bytes) : NULL;

	if (!config) {
		fprintf(stderr, "usage: record MODEL DIR\n");
		return 2;
	}
	vernier_record_open(&rec, argv[2], "tiny mistral", "f32");
	vernier_record_say(&rec, "language", "C");
	vernier_record_config(&rec, config);
	vernier_record_step(&rec, ids, (size_t)n);
	if (tiny_run(argv[1], ids, n, put_tensor, &rec) != 0) {
		fprintf(stderr, "record: %s: no such model\n", argv[1]);
		vernier_record_abandon(&rec);
		return 2;
	}
	free(config);
	if (vernier_record_close(&rec) != 0) {
		fprintf(stderr, "record: %s\n", vernier_record_error(&rec));
		return 2;
	}
	return 0;
}
