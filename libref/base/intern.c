/* intern.c: see intern.h. An open hash table under a lock; texts are stored one after the other in
 * blocks. */
#include "libref/base/intern.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { TEXT_BLOCK = 64 << 10, FIRST_ROOM = 1 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char    **table; /* (room), NULL: free */
static size_t          room, count;
static char           *block; /* the newest block; older texts are found through the table only */
static size_t          left;

/* The words are untrusted. The seed depends on the program's address, which an attacker does not
 * know, so that they cannot be made to collide. */
static uint64_t hash_word(const char *text)
{
	return XXH3_64bits_withSeed(text, strlen(text), (uint64_t)(uintptr_t)&table);
}

/* The slot of a text, or the free slot for it. */
static const char **slot_of(const char **in, size_t size, const char *text)
{
	size_t i = (size_t)hash_word(text) & (size - 1);
	while (in[i] && strcmp(in[i], text) != 0)
		i = (i + 1) & (size - 1);
	return &in[i];
}

static int grow_table(void)
{
	const size_t size = room ? 2 * room : FIRST_ROOM;
	const char **more = calloc(size, sizeof *more);

	if (!more)
		return 0;
	for (size_t i = 0; i < room; i++)
		if (table[i])
			*slot_of(more, size, table[i]) = table[i];
	free(table);
	table = more;
	room = size;
	return 1;
}

static const char *copy_word(const char *text)
{
	const size_t n = strlen(text) + 1;

	if (n > TEXT_BLOCK / 16)
		return strdup(text);
	if (n > left) {
		char *more = malloc(TEXT_BLOCK);
		if (!more)
			return NULL;
		block = more;
		left = TEXT_BLOCK;
	}
	char *to = block + TEXT_BLOCK - left;
	left -= n;
	return memcpy(to, text, n);
}

const char *vn_intern(const char *text)
{
	const char *word = "";

	if (!*text)
		return word;
	pthread_mutex_lock(&lock);
	if (2 * count >= room && !grow_table()) {
		pthread_mutex_unlock(&lock);
		return NULL;
	}
	const char **slot = slot_of(table, room, text);
	if (!*slot && (*slot = copy_word(text)))
		count++;
	word = *slot;
	pthread_mutex_unlock(&lock);
	return word;
}
