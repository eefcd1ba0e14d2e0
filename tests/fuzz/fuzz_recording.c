/* fuzz_recording.c: whatever bytes a checkpoint file has, opening it ends in a
 * recording or in one line.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address. Without: a program that takes
 *
 *   fuzz_recording FILE...                     each file once
 *   fuzz_recording --mutate N [--seed S] FILE  N damaged copies of FILE
 *   fuzz_recording                             a few of a golden file
 *   FUZZ_SECONDS=300 FUZZ_SEED=7 ...           for so long, and elsewhere
 *
 * and tells how often each line came. Files in HDF5's old format (what h5py
 * writes by default) have no checksums and get furthest. */
#include "capture/show/identities.h"
#include "capture/recording/recording.h"
#include "capture/view/view.h"
#include "libref/base/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static vn_error last;      /* what the last input ended in */
static int      last_read; /* 1: it opened; 2: and every number could be read */

/* A part is what it is of the whole. */
static void same_in_part(vn_recording *r, int i, const unsigned char *whole)
{
	const vn_entry *e = vn_recording_entry(r, i);
	const size_t    size = vn_dtype_size(e->dtype);
	const int64_t   n = vn_shape_count(&e->shape), from = n / 3, most = n - from - n / 4;
	unsigned char   part[1024];
	const int64_t   count = most < 100 ? most : 100;

	if (vn_recording_read(r, i, from, count, part, &last) || (count && memcmp(part, whole + (size_t)from * size, (size_t)count * size) != 0))
		abort();
}

/* All there is to ask. */
static int use(vn_recording *r)
{
	volatile double sum = 0;
	int             good = 2;

	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		const void     *numbers;
		if (vn_recording_find(r, e->step, e->name) != i || vn_shape_count(&e->shape) < 0)
			abort();
		if (vn_recording_data(r, i, &numbers, &last)) {
			good = 1;
			continue;
		}
		sum += vn_stats_of(numbers, e->dtype, (size_t)vn_shape_count(&e->shape)).max;
		vn_recording_release(r, i);
	}
	vn_identities found;
	if (vn_identities_of(r, NULL, NULL, &found, &last))
		good = 1;
	vn_identities_free(&found);
	for (int i = 0; i < vn_recording_count(r); i++) { /* as another recording might be seen */
		const vn_entry *e = vn_recording_entry(r, i);
		const int       turned[VN_MAX_RANK] = { e->shape.rank - 1, e->shape.rank > 2 ? 1 : 0, 0, 3 };
		const void     *numbers;
		if (e->shape.rank < 2 || e->shape.rank > 3 || e->same_as >= 0 || vn_view_axes(r, i, turned, &last) || vn_recording_data(r, i, &numbers, &last))
			continue;
		sum += vn_stats_of(numbers, e->dtype, (size_t)vn_shape_count(&e->shape)).max;
		same_in_part(r, i, numbers);
		vn_recording_release(r, i);
	}
	const int32_t *id, *position;
	const vn_step *step;
	const int64_t  n = vn_recording_tokens(r, &id, &position);
	const int      steps = vn_recording_steps(r, &step);
	for (int64_t i = 0; i < n; i++)
		if (id[i] < 0 || position[i] < 0)
			abort();
	for (int i = 0; i < steps; i++)
		if (step[i].position < 0 || step[i].tokens < 0 || step[i].position + step[i].tokens > n)
			abort();
	const vn_plan *p = vn_recording_plan(r);
	for (int v = 0; p && v < p->n_values; v++)
		sum += vn_plan_root(p, v);
	(void)sum;
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char          path[64];
	vn_recording *r;
	int           fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	*last.text = '\0';
	last_read = 0;
	if (vn_recording_open(path, &r, &last) == VN_OK)
		last_read = use(r);
	else if (!*last.text || strchr(last.text, '\n') || r)
		abort(); /* a refusal is one line, and leaves nothing */
	vn_recording_close(r);
	close(fd);
	return 0;
}

#ifndef VERNIER_LIBFUZZER

#ifndef VERNIER_SOURCE
#define VERNIER_SOURCE "."
#endif

static uint64_t state = 1;

static uint64_t dice(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? state % n : 0;
}

static size_t damage(uint8_t *data, size_t size)
{
	static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff };
	uint64_t             times = 1 + dice(6);

	for (uint64_t i = 0; i < times; i++) {
		size_t at = dice(size), n = 1 + dice(8), from;
		switch (dice(6)) {
		case 0:
		case 1: data[at] ^= (uint8_t)(1u << dice(8)); break;
		case 2: data[at] = odd[dice(sizeof odd)]; break;
		case 3: memset(data + at, odd[dice(sizeof odd)], size - at < n ? size - at : n); break;
		case 4: /* a piece of the file elsewhere */
			from = dice(size);
			n = 1 + dice(64);
			n = size - at < n ? size - at : n;
			memmove(data + at, data + from, size - from < n ? size - from : n);
			break;
		default: data[at] = (uint8_t)dice(256); break;
		}
	}
	return dice(20) ? size : dice(size + 1);
}

static uint8_t *load(const char *path, size_t *size)
{
	FILE    *f = fopen(path, "rb");
	uint8_t *data = NULL;

	if (f && fseek(f, 0, SEEK_END) == 0) {
		*size = (size_t)ftell(f);
		rewind(f);
		data = malloc(*size + 1);
		if (data && fread(data, 1, *size, f) != *size) {
			free(data);
			data = NULL;
		}
	}
	if (f)
		fclose(f);
	if (!data)
		fprintf(stderr, "%s: cannot be read\n", path);
	return data;
}

/* How often each line came, file name and numbers left out. */
enum { MOST_LINES = 512 };
static struct { char text[160]; int n; } line[MOST_LINES];

static void count(void)
{
	char  text[160];
	char *p = text;
	const char *from = last_read ? "" : strstr(last.text, ": ");

	if (last_read)
		from = last_read == 2 ? "opens, all numbers read" : last.text;
	for (from = from ? from : last.text; *from && p < text + sizeof text - 1; from++)
		if (*from < '0' || *from > '9')
			*p++ = *from;
	*p = '\0';
	for (int i = 0; i < MOST_LINES; i++)
		if (line[i].n == 0 || strcmp(line[i].text, text) == 0) {
			strcpy(line[i].text, text);
			line[i].n++;
			return;
		}
}

int main(int argc, char **argv)
{
	static char *few[] = { "", "--mutate", "200", VERNIER_SOURCE "/fixtures/golden/qwen2-trained.p001.f32.h5", NULL };
	const char *seconds = getenv("FUZZ_SECONDS"), *seed = getenv("FUZZ_SEED");
	const double end = seconds ? vn_seconds() + strtod(seconds, NULL) : 0;
	long times = 0, done = 0;
	int  i = 1;

	if (seed)
		state = strtoull(seed, NULL, 10) * 2654435761u + 1;
	if (argc < 2) {
		argv = few;
		argc = 4;
	}

	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (strcmp(argv[i], "--mutate") == 0)
			times = atol(argv[i + 1]);
		else
			state = strtoull(argv[i + 1], NULL, 10) * 2654435761u + 1;
	}
	for (; i < argc; i++) {
		size_t   size;
		uint8_t *data = load(argv[i], &size), *copy = data ? malloc(size + 1) : NULL;
		if (!copy)
			return 2;
		for (long n = 0; n < times || n == 0 || vn_seconds() < end; n++, done++) {
			memcpy(copy, data, size);
			LLVMFuzzerTestOneInput(copy, times ? damage(copy, size) : size);
			count();
		}
		free(copy);
		free(data);
	}
	for (int k = 0; k < MOST_LINES && line[k].n; k++)
		printf("%7d  %s\n", line[k].n, line[k].text);
	printf("%ld files, no failure\n", done);
	return 0;
}

#endif
