/* bench_names.c: bench_names FILE TENSORS STEPS VALUE [flat] [silent]: writes a recording of
 * TENSORS small tensors in each of STEPS steps through vernier_capture.h, as an engine would. All
 * numbers differ and are multiples of VALUE. flat: all names of a step in one group. silent: prints
 * a line after the last tensor and does nothing until it is killed. Prints seconds and peak memory
 * of both processes. */
#include "capture/include/vernier_capture.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long peak_of(int who)
{
	struct rusage u;
	return getrusage(who, &u) == 0 ? u.ru_maxrss / 1024 : -1;
}

int main(int argc, char **argv)
{
	const int     n = argc > 4 ? atoi(argv[2]) : 0, steps = argc > 4 ? atoi(argv[3]) : 0;
	const float   value = argc > 4 ? (float)atof(argv[4]) : 0;
	const int64_t shape[1] = { 2 };
	const bool    flat = argc > 5 && strcmp(argv[5], "flat") == 0;
	const double  begun = now();

	if (n < 1 || steps < 1) {
		fprintf(stderr, "bench_names FILE TENSORS STEPS VALUE [flat] [silent]\n");
		return 2;
	}
	vernier_capture *c = vernier_capture_open(argv[1], 1, "bench_names", "f32");
	for (int k = 0; k < steps && !*vernier_capture_error(c); k++) {
		vernier_capture_step(c, &(int32_t) { 7 }, 1);
		for (int i = 0; i < n; i++) {
			const float x[2] = { value * (float)(i + 1), -value * (float)(k + 1) };
			char        name[64];
			if (flat)
				snprintf(name, sizeof name, "other.%d.name", i);
			else
				snprintf(name, sizeof name, "layer%d.other_%d", i / 100, i % 100);
			vernier_capture_put(c, name, "other", "f32", x, 1, shape);
		}
	}
	if (strcmp(argv[argc - 1], "silent") == 0) {
		puts("silent");
		fflush(stdout);
		pause();
	}
	if (vernier_capture_commit(c) != 0) {
		fprintf(stderr, "bench_names: %s\n", vernier_capture_error(c));
		return 1;
	}
	vernier_capture_free(c);
	printf("%.1f s, %ld MB, %ld MB in the process that writes HDF5\n", now() - begun, peak_of(RUSAGE_SELF),
	       peak_of(RUSAGE_CHILDREN));
	return 0;
}
