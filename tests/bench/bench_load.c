/* bench_load.c: opening a model against reading its files once.
 *
 *   bench_load MODEL [THREADS [ROUNDS]]
 *
 * Measures in turn, in one run, with everything in the page cache: read(2) of every byte of the
 * model's files on one thread, vn_model_open alone (after it a reference engine can run: weights
 * stay mapped), and open with the table of weights that a recording carries (digest and statistics
 * of every number). Prints the median of each and the ratios to the reading. */
#include "libref/base/progress.h"
#include "libref/model/model.h"
#include "tests/support/median.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ROUNDS = 15, PIECE = 1 << 20 };

static char piece[PIECE];

static double read_file(const char *path)
{
	int     fd = open(path, O_RDONLY);
	double  bytes = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, piece, sizeof piece)) > 0)
		bytes += (double)n;
	if (fd >= 0)
		close(fd);
	return bytes;
}

/* Every file of a directory, or the one file. */
static double read_all(const char *path)
{
	DIR           *d = opendir(path);
	double         bytes = 0;
	struct dirent *e;
	char           name[4096];

	if (!d)
		return read_file(path);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && snprintf(name, sizeof name, "%s/%s", path, e->d_name) < (int)sizeof name)
			bytes += read_file(name);
	closedir(d);
	return bytes;
}

static double load(const char *path, int threads, bool table)
{
	double         start = vn_seconds();
	vn_error       err;
	vn_model      *m;
	vn_weight_row *rows = NULL;

	if (vn_model_open(path, &m, &err)) {
		fprintf(stderr, "bench_load: %s\n", err.text);
		exit(2);
	}
	if (table && (rows = calloc((size_t)vn_model_plan(m)->n_weights, sizeof *rows)))
		vn_model_table(m, threads, rows);
	double took = vn_seconds() - start;
	free(rows);
	vn_model_close(m);
	return took;
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: bench_load MODEL [THREADS [ROUNDS]]\n");
		return 2;
	}
	const int threads = argc > 2 ? atoi(argv[2]) : 2;
	int       rounds = argc > 3 ? atoi(argv[3]) : 5;
	double    reading[MAX_ROUNDS], opening[MAX_ROUNDS], table[MAX_ROUNDS];
	double    bytes = read_all(argv[1]); /* into the page cache */

	rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	for (int i = 0; i < rounds; i++) {
		double start = vn_seconds();
		read_all(argv[1]);
		reading[i] = vn_seconds() - start;
		opening[i] = load(argv[1], threads, false);
		table[i] = load(argv[1], threads, true);
	}
	double r = median(reading, rounds), o = median(opening, rounds), t = median(table, rounds);
	printf("%s, %.2f GB, %d threads, median of %d\n", argv[1], bytes / 1e9, threads, rounds);
	printf("reading it once        %8.4f s   %.2f GB/s\n", r, bytes / 1e9 / r);
	printf("open                   %8.4f s   %.3f times the reading\n", o, o / r);
	printf("open, table of weights %8.4f s   %.3f times the reading (limit 1)\n", t, t / r);
	return t <= r ? 0 : 1;
}
