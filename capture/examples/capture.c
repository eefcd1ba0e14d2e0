/* capture.c MODEL FILE [REF]: an engine that writes a checkpoint file itself,
 * by libvernier-capture.
 *
 *     cc -std=c99 capture.c $(pkg-config --cflags --libs vernier-capture) -lm -o capture
 *     ./capture MODEL cand.h5
 */
#include "vernier_capture.h"

#include "tiny_mistral.h"

static void put_tensor(void *recording, const char *name, const char *dims, const float *x, int rank,
                       const int64_t *shape)
{
	vernier_capture_put((vernier_capture *)recording, name, dims, "f32", x, rank, shape);
}

int main(int argc, char **argv)
{
	static const int32_t ids[] = { 12, 345, 6, 78, 9, 10, 111, 213, 14, 415, 16, 17, 318, 19, 20, 21, 222 };
	const int            n = (int)(sizeof ids / sizeof *ids);
	size_t               bytes;
	char                *config = argc == 3 || argc == 4 ? tiny_read(argv[1], "config.json", &bytes) : NULL;
	vernier_capture     *rec;
	int                  status = 2;

	if (!config) {
		fprintf(stderr, "usage: capture MODEL FILE [REF]\n");
		return 2;
	}
	rec = vernier_capture_open(argv[2], 0, "tiny mistral", "f32");
	vernier_capture_say(rec, "language", "C");
	vernier_capture_config(rec, config);
	if (argc == 4) /* only what differs from REF is written */
		vernier_capture_against(rec, argv[3], 0);
	vernier_capture_step(rec, ids, (size_t)n);
	if (tiny_run(argv[1], ids, n, put_tensor, rec) != 0)
		fprintf(stderr, "capture: %s: no such model\n", argv[1]);
	else if (vernier_capture_commit(rec) != 0)
		fprintf(stderr, "capture: %s\n", vernier_capture_error(rec));
	else
		status = 0;
	if (*vernier_capture_differs(rec))
		printf("differs first: %s\n", vernier_capture_differs(rec));
	vernier_capture_free(rec);
	free(config);
	return status;
}
