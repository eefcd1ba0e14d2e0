/* mutate.h: a fuzzer's main for builds without libFuzzer, and what fuzzers assert.
 *
 * Seeds are run unchanged, then mutated: bytes changed, cut or doubled, and words put in from the
 * target's dictionary (dictionary.sh, in libFuzzer's format). The random numbers are fixed, so a
 * run repeats.
 *
 *   fuzz_x                 seeds, and 20000 mutations or a second of them
 *   fuzz_x FILE|FOLDER...  those files as well, as they are and as seeds
 *   FUZZ_SECONDS=300 FUZZ_SEED=7 fuzz_x    longer, and elsewhere
 *   FUZZ_WRITE=FOLDER fuzz_x               its own seeds into a folder, and nothing else
 *
 * A failure is a crash or an abort; the input that made it is in fuzz.last
 * when FUZZ_KEEP is set. */
#pragma once

#include "libref/base/progress.h"
#include "libref/base/text.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken property. Not an assert: release builds have none. */
#define MUST(what) ((what) ? (void)0 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what), abort()))

/* Checks a refusal's message: one line, not empty, safe to show on a terminal. */
static inline int fuzz_one_line(const char *text)
{
	const char *c = text;
	while (*c && !vn_text_control(*c))
		c++;
	return *text && !*c;
}

/* When a sanitizer ends a process, libFuzzer keeps the input. This is off in children, where HDF5
 * may crash on damaged files: the parent reports it. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static inline void fuzz_forked(void)
{
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(NULL);
}

static inline void fuzz_quiet_children(void)
{
	static int ready;
	if (!ready++)
		pthread_atfork(NULL, NULL, fuzz_forked);
}

/* A file that was written in this moment is waited for until the file system's clock has ticked
 * (vn_stat_settled): 12 ms of a run. So this moment is another one. */
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	const int said = __real_clock_gettime(clock, now);

	now->tv_sec += clock == CLOCK_REALTIME ? 2 : 0;
	return said;
}

/* The input as a text; to be freed. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text)
		exit(2);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

static inline uint64_t fuzz_random(uint64_t *s) /* splitmix64 */
{
	uint64_t x = *s += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

#ifndef VERNIER_LIBFUZZER

enum { FUZZ_ROOM = 1 << 16 };

typedef struct fuzz_plan {
	size_t (*make_seed)(int i, uint8_t *out); /* at most FUZZ_ROOM bytes */
	int n_seeds;
	size_t (*repair)(uint8_t *data, size_t size, uint64_t chance); /* NULL: none */
	size_t (*mutate)(uint8_t *data, size_t size, uint64_t *s);     /* NULL: fuzz_mutate */
} fuzz_plan;

/* ---- the dictionary --------------------------------------------------------------------- */

static struct {
	uint8_t *data;
	size_t   size;
} * fuzz_word;
static size_t fuzz_words;

/* The word between the quotes, where \\, \" and \xAB are one byte. */
static inline size_t fuzz_unquote(const char *line, uint8_t *out)
{
	size_t      n = 0;
	const char *p = strchr(line, '"');

	for (p = p ? p + 1 : ""; *p && *p != '"' && *p != '\n'; n++) {
		unsigned x;
		if (*p == '\\' && p[1] == 'x' && sscanf(p + 2, "%2x", &x) == 1) {
			out[n] = (uint8_t)x;
			p += 4;
		} else {
			p += *p == '\\';
			out[n] = (uint8_t)*p++;
		}
	}
	return n;
}

static inline void fuzz_read_words(void)
{
	static const char path[] = FUZZ_DICTIONARY;
	char              line[1024];
	FILE             *f = fopen(path, "r");

	while (f && fgets(line, sizeof line, f)) {
		uint8_t      word[sizeof line];
		const size_t n = *line == '#' ? 0 : fuzz_unquote(line, word);
		if (!n)
			continue;
		if (!(fuzz_word = realloc(fuzz_word, (fuzz_words + 1) * sizeof *fuzz_word)) ||
		    !(fuzz_word[fuzz_words].data = malloc(n)))
			exit(2);
		memcpy(fuzz_word[fuzz_words].data, word, n);
		fuzz_word[fuzz_words++].size = n;
	}
	if (!f || !fuzz_words) {
		fprintf(stderr, "%s: no dictionary\n", path);
		exit(2);
	}
	fclose(f);
}

/* ---- mutations ---------------------------------------------------------------------------- */

/* Replace [at, at + gone) by n bytes. */
static inline size_t fuzz_splice(uint8_t *d, size_t size, size_t at, size_t gone, const void *with, size_t n)
{
	if (size - gone + n > FUZZ_ROOM)
		return size;
	memmove(d + at + n, d + at + gone, size - at - gone);
	memcpy(d + at, with, n);
	return size - gone + n;
}

/* Replaces [at, at + gone) by a word. */
static inline size_t fuzz_put_word(uint8_t *d, size_t size, size_t at, size_t gone, uint64_t pick)
{
	pick %= fuzz_words;
	return fuzz_splice(d, size, at, gone, fuzz_word[pick].data, fuzz_word[pick].size);
}

static inline size_t fuzz_mutate(uint8_t *d, size_t size, uint64_t *s)
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
		case 2: /* cut some */ size = fuzz_splice(d, size, at, some, "", 0); break;
		case 3: /* double some */
			memcpy(piece, d + at, some);
			size = fuzz_splice(d, size, at, 0, piece, some);
			break;
		case 4: /* a word put in */ size = fuzz_put_word(d, size, at, 0, r >> 8); break;
		case 5: { /* a word in place of a number or a word */
			size_t from = at, to = at;
			while (from > 0 && !strchr("[]{},: \"", d[from - 1]))
				from--;
			while (to < size && !strchr("[]{},: \"", d[to]))
				to++;
			size = fuzz_put_word(d, size, from, to - from, r >> 8);
			break;
		}
		case 6: /* rarely: cut the end */
			if (r >> 8 & 1)
				size = at;
			break;
		}
	}
	return size;
}

/* Mutates a format full of offsets: moves nothing, but copies pieces elsewhere and rarely cuts the
 * end. */
static inline size_t fuzz_damage(uint8_t *d, size_t size, uint64_t *s)
{
	static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff };

	for (uint64_t n = size ? 1 + fuzz_random(s) % 6 : 0; n; n--) {
		const uint64_t r = fuzz_random(s);
		const size_t   at = (size_t)(fuzz_random(s) % size), from = (size_t)(fuzz_random(s) % size);
		const size_t   most = size - (at > from ? at : from), some = r >> 8 & 63, word = (size_t)(r >> 16) % fuzz_words;
		switch (r % 6) {
		case 0:
		case 1: d[at] ^= (uint8_t)(1u << (r >> 8) % 8); break;
		case 2: d[at] = odd[(r >> 8) % sizeof odd]; break;
		case 3: d[at] = (uint8_t)(r >> 8); break;
		case 4: memmove(d + at, d + from, some < most ? some : most); break;
		case 5:
			if (fuzz_word[word].size <= size - at)
				memcpy(d + at, fuzz_word[word].data, fuzz_word[word].size);
			break;
		}
	}
	return size && fuzz_random(s) % 20 == 0 ? (size_t)(fuzz_random(s) % size) : size;
}

/* ---- running -------------------------------------------------------------------------------- */

static struct {
	uint8_t *data;
	size_t   size;
} * fuzz_seed;
static size_t fuzz_seeds;

/* Copies the input to memory of exactly its size, so that a sanitizer sees one byte too far. */
static inline void fuzz_run(const uint8_t *data, size_t size)
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
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static inline void fuzz_add_seed(const uint8_t *data, size_t size)
{
	if (!(fuzz_seed = realloc(fuzz_seed, (fuzz_seeds + 1) * sizeof *fuzz_seed)) ||
	    !(fuzz_seed[fuzz_seeds].data = malloc(size + 1)))
		exit(2);
	memcpy(fuzz_seed[fuzz_seeds].data, data, size);
	fuzz_seed[fuzz_seeds++].size = size;
}

static inline int fuzz_shown(const struct dirent *e)
{
	return *e->d_name != '.';
}

/* A file, or all files of a folder. */
static inline void fuzz_add_path(const char *path)
{
	static uint8_t  d[FUZZ_ROOM];
	struct dirent **list;
	const int       n = scandir(path, &list, fuzz_shown, alphasort);

	for (int i = 0; i < n; i++) {
		char *inner = NULL;
		if (asprintf(&inner, "%s/%s", path, list[i]->d_name) < 0)
			exit(2);
		fuzz_add_path(inner);
		free(inner);
		free(list[i]);
	}
	if (n >= 0) {
		free(list);
		return;
	}
	FILE *in = fopen(path, "rb");
	if (!in) {
		perror(path);
		exit(2);
	}
	fuzz_add_seed(d, fread(d, 1, sizeof d, in));
	fclose(in);
}

static inline void fuzz_write_seeds(const char *folder)
{
	for (size_t i = 0; i < fuzz_seeds; i++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/seed%zu", folder, i);
		FILE *f = fopen(path, "wb");
		if (!f || fwrite(fuzz_seed[i].data, 1, fuzz_seed[i].size, f) != fuzz_seed[i].size || fclose(f) != 0) {
			perror(path);
			exit(2);
		}
	}
}

static inline long fuzz_mutations(const fuzz_plan *f)
{
	static uint8_t d[FUZZ_ROOM];
	const char    *seconds = getenv("FUZZ_SECONDS"), *start = getenv("FUZZ_SEED");
	const double   limit = seconds ? strtod(seconds, NULL) : 1.0, began = vn_seconds();
	uint64_t       s = start ? strtoull(start, NULL, 10) : 1;
	long           done = 0;

	for (; fuzz_seeds && (seconds || done < 20000) && vn_seconds() - began < limit; done++) {
		const size_t i = (size_t)(fuzz_random(&s) % fuzz_seeds);
		memcpy(d, fuzz_seed[i].data, fuzz_seed[i].size);
		size_t size = (f->mutate ? f->mutate : fuzz_mutate)(d, fuzz_seed[i].size, &s);
		if (f->repair)
			size = f->repair(d, size, fuzz_random(&s));
		fuzz_run(d, size);
	}
	return done;
}

static inline void fuzz_interrupt(int signal)
{
	(void)signal;
}

/* A timer interrupts system calls, as libFuzzer's does every 11 seconds. */
static inline void fuzz_start_timer(void)
{
	const struct timeval often = { 0, 20000 };

	if (sigaction(SIGALRM, &(struct sigaction) { .sa_handler = fuzz_interrupt }, NULL) != 0 ||
	    setitimer(ITIMER_REAL, &(struct itimerval) { often, often }, NULL) != 0)
		exit(2);
}

static inline int fuzz_main(int argc, char **argv, const fuzz_plan *f)
{
	static uint8_t d[FUZZ_ROOM];

	fuzz_start_timer();
	for (int i = 0; i < f->n_seeds; i++)
		fuzz_add_seed(d, f->make_seed(i, d));
	if (getenv("FUZZ_WRITE")) {
		fuzz_write_seeds(getenv("FUZZ_WRITE"));
		return 0;
	}
	for (int i = 1; i < argc; i++)
		fuzz_add_path(argv[i]);
	fuzz_read_words();
	for (size_t i = 0; i < fuzz_seeds; i++)
		fuzz_run(fuzz_seed[i].data, fuzz_seed[i].size);
	const long done = fuzz_mutations(f);
	printf("%zu seeds, %ld mutations, no failure\n", fuzz_seeds, done);
	for (size_t i = 0; i < fuzz_seeds; i++)
		free(fuzz_seed[i].data);
	free(fuzz_seed);
	for (size_t i = 0; i < fuzz_words; i++)
		free(fuzz_word[i].data);
	free(fuzz_word);
	return 0;
}

/* The same with seeds that are texts. */
static const char *const *fuzz_texts_seed;

static inline size_t fuzz_text_seed(int i, uint8_t *out)
{
	memcpy(out, fuzz_texts_seed[i], strlen(fuzz_texts_seed[i]));
	return strlen(fuzz_texts_seed[i]);
}

static inline int fuzz_texts(int argc, char **argv, const char *const *seeds, size_t n)
{
	fuzz_texts_seed = seeds;
	return fuzz_main(argc, argv, &(fuzz_plan) { fuzz_text_seed, (int)n, NULL, NULL });
}

#endif
