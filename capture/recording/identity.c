/* identity.c: see identity.h. */
#include "capture/recording/identity.h"

#include "capture/recording/recording_internal.h"
#include "libref/base/alloc.h"
#include "libref/base/map.h"

#include <stdlib.h>

enum { LARGE = 16 << 20, PIECE = 4 << 20 }; /* opening a recording takes as long as reading a few MB */

typedef struct number_bytes {
	size_t from, to;
} number_bytes;

static int by_place(const void *a, const void *b)
{
	const number_bytes *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

/* Returns where the numbers are that a digest stands for, sorted, to be freed. */
static number_bytes *find_digested(const vn_recording *r, int *n)
{
	number_bytes *e = vn_alloc_zero((size_t)r->n_entries + 1, sizeof *e);

	*n = 0;
	for (int i = 0; i < r->n_entries; i++)
		if (r->entry[i].has_digest && r->source[i].offset >= 0)
			e[(*n)++] = (number_bytes) { (size_t)r->source[i].offset,
				                         (size_t)(r->source[i].offset + r->source[i].bytes) };
	qsort(e, (size_t)*n, sizeof *e, by_place);
	return e;
}

static void add_bytes(vn_digester *d, const vn_map *map, size_t from, size_t to)
{
	for (size_t at = from; at < to; at += PIECE) {
		const size_t n = to - at < PIECE ? to - at : PIECE;
		vn_digester_add(d, map->data + at, n);
		vn_map_release(map->data + at, n);
	}
}

static void add_undigested(vn_digester *d, const vn_map *map, const number_bytes *e, int n)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		if (e[i].from > at)
			add_bytes(d, map, at, e[i].from);
		at = e[i].to > at ? e[i].to : at;
	}
	add_bytes(d, map, at, map->bytes);
}

vn_status vn_recording_identity(const char *path, vn_digest *d, vn_error *err)
{
	vn_recording *r = NULL;
	vn_map        map;
	number_bytes *e = NULL;
	int           n = 0;
	vn_status     st = vn_map_open(path, &map, err);

	if (st)
		return st;
	if (map.bytes >= LARGE && !vn_recording_open(path, &r, NULL) && (size_t)r->bytes == map.bytes)
		e = find_digested(r, &n);
	vn_digester *all = vn_alloc_check(vn_digester_create());
	add_undigested(all, &map, e, n);
	*d = vn_digester_finish(all);
	free(e);
	vn_recording_close(r);
	vn_map_close(&map);
	return VN_OK;
}
