/* mutate.h: a fuzzer's main for builds without libFuzzer.
 *
 * Seeds are run as they are, then mutated: bytes changed, cut, doubled, words
 * of the language put in. The random numbers are fixed, so a run repeats.
 *
 *   fuzz_x                 seeds, and 20000 mutations or ten seconds of them
 *   fuzz_x FILE...         those files as well, as they are and as seeds
 *   FUZZ_SECONDS=300 FUZZ_SEED=7 fuzz_x    longer, and elsewhere
 *
 * A failure is a crash or an abort; the input that made it is in fuzz.last
 * when FUZZ_KEEP is set. */
#ifndef VN_TESTS_FUZZ_MUTATE_H
#define VN_TESTS_FUZZ_MUTATE_H

#include "libref/base/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef VERNIER_LIBFUZZER

enum { FUZZ_ROOM = 1 << 16, FUZZ_SEEDS = 256 };

typedef struct fuzz_plan {
	int        (*one)(const uint8_t *data, size_t size);
	size_t     (*make_seed)(int i, uint8_t *out); /* at most FUZZ_ROOM bytes */
	int          n_seeds;
	size_t     (*repair)(uint8_t *data, size_t size, uint64_t chance); /* NULL: none */
	const char  *words; /* of the language, separated by spaces */
} fuzz_plan;

static inline uint64_t fuzz_random(uint64_t *s) /* splitmix64 */
{
	uint64_t x = *s += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Replace [at, at + gone) by n bytes. */
static inline size_t fuzz_splice(uint8_t *d, size_t size, size_t at, size_t gone, const void *with, size_t n)
{
	if (size - gone + n > FUZZ_ROOM)
		return size;
	memmove(d + at + n, d + at + gone, size - at - gone);
	memcpy(d + at, with, n);
	return size - gone + n;
}

static inline size_t fuzz_word(const char *words, uint64_t pick, char *out)
{
	int n = 1;

	for (const char *p = words; *p; p++)
		n += *p == ' ';
	for (pick %= (uint64_t)n; pick; pick--)
		words = strchr(words, ' ') + 1;
	const size_t length = strcspn(words, " ");
	memcpy(out, words, length);
	return length;
}

static inline size_t fuzz_mutate(const fuzz_plan *f, uint8_t *d, size_t size, uint64_t *s)
{
	static uint8_t piece[FUZZ_ROOM];

	for (uint64_t n = 1 + fuzz_random(s) % 4; n; n--) {
		const uint64_t r = fuzz_random(s);
		const size_t   at = size ? (size_t)(fuzz_random(s) % size) : 0;
		const size_t   most = size - at, some = most ? (size_t)(fuzz_random(s) % (most < 40 ? most + 1 : 40)) : 0;
		switch (r % 7) {
		case 0:
			if (size)
				d[at] = (uint8_t)(r >> 8);
			break;
		case 1:
			if (size)
				d[at] ^= (uint8_t)(1u << (r >> 8) % 8);
			break;
		case 2: /* cut some */
			size = fuzz_splice(d, size, at, some, "", 0);
			break;
		case 3: /* double some */
			memcpy(piece, d + at, some);
			size = fuzz_splice(d, size, at, 0, piece, some);
			break;
		case 4: { /* a word put in */
			const size_t m = fuzz_word(f->words, r >> 8, (char *)piece);
			size = fuzz_splice(d, size, at, 0, piece, m);
			break;
		}
		case 5: { /* a word in place of a number or a word */
			size_t from = at, to = at;
			while (from > 0 && !strchr("[]{},: \"", d[from - 1]))
				from--;
			while (to < size && !strchr("[]{},: \"", d[to]))
				to++;
			const size_t m = fuzz_word(f->words, r >> 8, (char *)piece);
			size = fuzz_splice(d, size, from, to - from, piece, m);
			break;
		}
		case 6: /* the end gone, seldom */
			if (r >> 8 & 1)
				size = at;
			break;
		}
	}
	return size;
}

/* The input in memory of exactly its size: one byte too far is then seen by a sanitizer. */
static inline void fuzz_run(const fuzz_plan *f, const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		exit(2);
	if (size)
		memcpy(exact, data, size);
	if (getenv("FUZZ_KEEP")) {
		FILE *k = fopen("fuzz.last", "wb");
		if (k && (fwrite(exact, 1, size, k) != size || fclose(k) != 0))
			exit(2);
	}
	f->one(exact, size);
	free(exact);
}

static inline int fuzz_main(int argc, char **argv, const fuzz_plan *f)
{
	static struct { uint8_t *data; size_t size; } seed[FUZZ_SEEDS];
	static uint8_t d[FUZZ_ROOM];
	const char    *seconds = getenv("FUZZ_SECONDS"), *start = getenv("FUZZ_SEED");
	const double   limit = seconds ? strtod(seconds, NULL) : 10.0;
	uint64_t       s = start ? strtoull(start, NULL, 10) : 1;
	long           done = 0;
	int            n = 0;

	for (int i = 0; i < f->n_seeds + argc - 1 && n < FUZZ_SEEDS; i++, n++) {
		size_t size;
		if (i < f->n_seeds) {
			size = f->make_seed(i, d);
		} else {
			FILE *in = fopen(argv[i - f->n_seeds + 1], "rb");
			if (!in) {
				perror(argv[i - f->n_seeds + 1]);
				return 2;
			}
			size = fread(d, 1, sizeof d, in);
			fclose(in);
		}
		seed[n].size = size;
		if (!(seed[n].data = malloc(size + 1)))
			return 2;
		memcpy(seed[n].data, d, size);
		fuzz_run(f, d, size);
	}
	const double began = vn_seconds();
	while ((seconds || done < 20000) && vn_seconds() - began < limit) {
		const int i = (int)(fuzz_random(&s) % (uint64_t)n);
		memcpy(d, seed[i].data, seed[i].size);
		size_t size = fuzz_mutate(f, d, seed[i].size, &s);
		if (f->repair)
			size = f->repair(d, size, fuzz_random(&s));
		fuzz_run(f, d, size);
		done++;
	}
	for (int i = 0; i < n; i++)
		free(seed[i].data);
	printf("%d seeds, %ld mutations, no failure\n", n, done);
	return 0;
}

/* The same with seeds that are texts. */
static const char *const *fuzz_text;

static inline size_t fuzz_text_seed(int i, uint8_t *out)
{
	memcpy(out, fuzz_text[i], strlen(fuzz_text[i]));
	return strlen(fuzz_text[i]);
}

static inline int fuzz_texts(int argc, char **argv, const char *const *seeds, size_t n, const char *words)
{
	fuzz_text = seeds;
	return fuzz_main(argc, argv, &(fuzz_plan){ LLVMFuzzerTestOneInput, fuzz_text_seed, (int)n, NULL, words });
}

#endif
#endif
