/* bend.h: main of a fuzzer of YAML, for builds without libFuzzer: one seed, cut anywhere and bent at random.
 *
 * mutate.h has the general one; here blanks are part of the words that are put in, and
 * files are so small that ten times as many can be tried. FUZZ_SECONDS and FUZZ_SEED as there.
 */
#ifndef VN_TESTS_FUZZ_BEND_H
#define VN_TESTS_FUZZ_BEND_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef VERNIER_LIBFUZZER

enum { BEND_ROOM = 1 << 20 };

/* In memory of exactly its size: one byte too far is then seen by a sanitizer. */
static inline void bend_try(const void *data, size_t n)
{
	uint8_t *exact = malloc(n ? n : 1);
	if (!exact)
		exit(2);
	memcpy(exact, data, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
}

static inline int bend_file(const char *path, uint8_t *data)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return 1;
	bend_try(data, fread(data, 1, BEND_ROOM, f));
	fclose(f);
	return 0;
}

/* argv: files to be tried as they are. An empty piece is a zero byte. */
static inline int bend_main(int argc, char **argv, const char *seed, const char *const *piece, size_t n_pieces)
{
	static uint8_t data[BEND_ROOM];
	const size_t   size = strlen(seed), room = 2 * size;
	uint64_t       r = 88172645463325252u;

	for (int i = 1; i < argc; i++)
		if (bend_file(argv[i], data))
			return 1;
	for (size_t n = 0; n <= size; n++)
		bend_try(seed, n);
	const char *seconds = getenv("FUZZ_SECONDS"), *other = getenv("FUZZ_SEED");
	const time_t end = time(NULL) + (seconds ? atoi(seconds) : 0);
	long i = 0;
	if (other)
		r += 2654435761u * strtoull(other, NULL, 10);
	for (; i < 200000 || time(NULL) < end; i++) {
		size_t n = size;
		memcpy(data, seed, n);
		for (long k = 0; k < 1 + i % 4; k++) {
			r ^= r << 13;
			r ^= r >> 7;
			r ^= r << 17;
			const size_t at = (size_t)(r >> 8) % n;
			const char  *p = piece[(r >> 40) % n_pieces];
			const size_t len = *p ? strlen(p) : 1;
			if (r & 1) {
				data[at] = (uint8_t)(r >> 32);
			} else if (r & 2 && n + len <= room) {
				memmove(data + at + len, data + at, n - at);
				memcpy(data + at, p, len);
				n += len;
			} else if (n > 1) {
				memmove(data + at, data + at + 1, n - at - 1);
				n--;
			}
		}
		bend_try(data, n);
	}
	printf("%ld bent files, none believed by mistake\n", i);
	return 0;
}

#endif
#endif
