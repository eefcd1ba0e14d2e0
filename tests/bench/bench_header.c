/* bench_header.c [FOLDER [MB]]: what vernier_record.h writes a second, against plain write(2) of
 * the same bytes to the same disk.
 *
 * Writes tensors of 4 MB both ways in turn, several times. The result is the ratio of the medians
 * (at least 0.7 is promised). Both ways end with sync. */
#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_record.h"

#include "libref/base/progress.h"
#include "tests/support/median.h"

#include <fcntl.h>
#include <unistd.h>

enum { TENSOR = 4 << 20, TURNS = 8 };

static char folder[512];

static void empty(const char *what)
{
	char command[600];
	snprintf(command, sizeof command, "rm -rf '%s/%s'", folder, what);
	if (system(command) != 0)
		exit(2);
}

static double plain(const float *x, int n)
{
	char path[600];
	snprintf(path, sizeof path, "%s/plain", folder);
	if (mkdir(path, 0777) != 0)
		exit(2);
	const double start = vn_seconds();
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/plain/%d", folder, i);
		const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
		for (size_t at = 0; at < TENSOR;) {
			const ssize_t k = write(fd, (const char *)x + at, TENSOR - at);
			if (k <= 0)
				exit(2);
			at += (size_t)k;
		}
		close(fd);
	}
	sync();
	return vn_seconds() - start;
}

static double header(const float *x, int n)
{
	const int32_t  id = 1;
	const int64_t  shape[] = { 1024, TENSOR / 4096 };
	char           path[600], name[32];
	vernier_record r;
	snprintf(path, sizeof path, "%s/dump", folder);
	const double start = vn_seconds();
	vernier_record_open(&r, path, "bench", "f32");
	vernier_record_step(&r, &id, 1);
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof name, "layer%d.output", i);
		vernier_record_put(&r, name, "token hidden", "f32", x, 2, shape);
	}
	if (vernier_record_close(&r) != 0) {
		fprintf(stderr, "%s\n", vernier_record_error(&r));
		exit(2);
	}
	sync();
	return vn_seconds() - start;
}

int main(int argc, char **argv)
{
	const int n = (argc > 2 ? atoi(argv[2]) : 512) * (1 << 20) / TENSOR;
	double    a[TURNS], b[TURNS];
	float    *x = malloc(TENSOR);

	snprintf(folder, sizeof folder, "%s/bench_header", argc > 1 ? argv[1] : ".");
	if (!x || n < 1 || (mkdir(folder, 0777) != 0 && errno != EEXIST))
		return 2;
	for (int i = 0; i < TENSOR / 4; i++)
		x[i] = (float)i;
	for (int i = 0; i < TURNS; i++) {
		for (int k = 0; k < 2; k++) /* each goes first in turn */
			if (k == i % 2) {
				a[i] = plain(x, n);
				empty("plain");
			} else {
				b[i] = header(x, n);
				empty("dump");
			}
	}
	rmdir(folder);
	const double mb = (double)n * TENSOR / 1e6, p = median(a, TURNS), h = median(b, TURNS);
	printf("%.0f MB in %d tensors, to the disk: write(2) %.0f MB/s, vernier_record.h %.0f MB/s: ratio %.2f\n", mb, n,
	       mb / p, mb / h, p / h);
	free(x);
	return p / h >= 0.7 ? 0 : 1;
}
