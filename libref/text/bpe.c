/* bpe.c: see bpe.h. */
#include "libref/text/bpe.h"

#include "libref/text/bytelevel.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct token {
	size_t at, n; /* offset and length of its text; n = 0: no token */
} token;

/* The merge of two neighbours. left is -1 in an empty slot. */
typedef struct merge {
	int32_t left, right, rank, id;
} merge;

struct vn_bpe {
	bool     whole_first;
	char    *text; /* all tokens */
	size_t   n_text, room_text;
	token   *token; /* (n_ids) by id */
	size_t   n_ids, room_ids, n_tokens;
	int32_t  byte[256]; /* token of each single byte; -1: none */
	/* Open addressing; sizes are powers of two, at most half full. */
	int32_t *by_text; /* ids, -1: empty */
	size_t   room_by_text;
	merge   *merge;
	size_t   n_merges, room_merges;
	int32_t  next_rank;
};

vn_bpe *vn_bpe_create(bool whole_first)
{
	vn_bpe *b = vn_alloc_zero(1, sizeof *b);

	b->whole_first = whole_first;
	memset(b->byte, 0xff, sizeof b->byte);
	return b;
}

void vn_bpe_destroy(vn_bpe *b)
{
	if (!b)
		return;
	VN_FREE(b->text, b->token, b->by_text, b->merge, b);
}

/* Grows the list to n elements if needed. */
static void *grow_list(void *list, size_t n, size_t *room, size_t size)
{
	if (n <= *room)
		return list;
	for (*room = *room ? *room : 256; *room < n;)
		*room *= 2;
	return vn_alloc_resized(list, *room, size);
}

/* ---- tokens by text ------------------------------------------------------------ */

/* The slot of text in by_text, or the empty slot for it. */
static size_t slot_of_text(const vn_bpe *b, const char *text, size_t n)
{
	size_t i = (size_t)XXH3_64bits(text, n) & (b->room_by_text - 1);

	for (; b->by_text[i] >= 0; i = (i + 1) & (b->room_by_text - 1)) {
		const token *t = &b->token[b->by_text[i]];
		if (t->n == n && memcmp(b->text + t->at, text, n) == 0)
			break;
	}
	return i;
}

static void make_room_by_text(vn_bpe *b)
{
	const size_t room = b->room_by_text ? 2 * b->room_by_text : 1024;

	if (2 * (b->n_tokens + 1) <= b->room_by_text)
		return;
	int32_t *list = b->by_text = vn_alloc_resized(b->by_text, room, sizeof *list);
	memset(list, 0xff, room * sizeof *list);
	b->room_by_text = room;
	for (size_t id = 0; id < b->n_ids; id++)
		if (b->token[id].n)
			list[slot_of_text(b, b->text + b->token[id].at, b->token[id].n)] = (int32_t)id;
}

int32_t vn_bpe_find(const vn_bpe *b, const char *text, size_t n)
{
	return b->room_by_text && n ? b->by_text[slot_of_text(b, text, n)] : -1;
}

int32_t vn_bpe_ids(const vn_bpe *b)
{
	return (int32_t)b->n_ids;
}

const char *vn_bpe_text(const vn_bpe *b, int32_t id, size_t *n)
{
	*n = id >= 0 && (size_t)id < b->n_ids ? b->token[id].n : 0;
	return *n ? b->text + b->token[id].at : NULL;
}

vn_status vn_bpe_add_token(vn_bpe *b, const char *text, size_t n, int64_t id, vn_error *err)
{
	size_t      other;
	char        byte[2];
	const char *there;

	if (n == 0)
		return vn_fail(err, VN_ERR_FORMAT, "the token is empty");
	if (id < 0 || id >= VN_MOST_TOKENS)
		return vn_fail(err, VN_ERR_FORMAT, "'%.*s' has the id %" PRId64 ", expected 0 to %d", vn_bpe_quoted(n), text,
		               id, VN_MOST_TOKENS - 1);
	if ((there = vn_bpe_text(b, (int32_t)id, &other)))
		return vn_fail(err, VN_ERR_FORMAT, "'%.*s' and '%.*s' have the same id %" PRId64, vn_bpe_quoted(other), there,
		               vn_bpe_quoted(n), text, id);
	if (vn_bpe_find(b, text, n) >= 0)
		return vn_fail(err, VN_ERR_FORMAT, "'%.*s' is listed twice, with the ids %" PRId32 " and %" PRId64,
		               vn_bpe_quoted(n), text, vn_bpe_find(b, text, n), id);
	const size_t ids = (size_t)id < b->n_ids ? b->n_ids : (size_t)id + 1;
	b->text = grow_list(b->text, b->n_text + n, &b->room_text, 1);
	b->token = grow_list(b->token, ids, &b->room_ids, sizeof *b->token);
	make_room_by_text(b);
	memset(b->token + b->n_ids, 0, (ids - b->n_ids) * sizeof *b->token);
	b->n_ids = ids;
	b->by_text[slot_of_text(b, text, n)] = (int32_t)id;
	memcpy(b->text + b->n_text, text, n);
	b->token[id] = (token) { b->n_text, n };
	b->n_text += n;
	b->n_tokens++;
	if (n <= 2 && vn_bytelevel_read(byte, &other, text, n) && other == 1)
		b->byte[(unsigned char)*byte] = (int32_t)id;
	return VN_OK;
}

/* ---- merges -------------------------------------------------------------------- */

static size_t slot_of_pair(const vn_bpe *b, int32_t left, int32_t right)
{
	uint64_t x = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
	size_t   i = (size_t)(x ^ x >> 32) & (b->room_merges - 1);

	while (b->merge[i].left >= 0 && (b->merge[i].left != left || b->merge[i].right != right))
		i = (i + 1) & (b->room_merges - 1);
	return i;
}

/* The merge of two symbols, or NULL. */
static const merge *merge_of(const vn_bpe *b, int32_t left, int32_t right)
{
	const merge *m = b->room_merges ? &b->merge[slot_of_pair(b, left, right)] : NULL;
	return m && m->left >= 0 ? m : NULL;
}

static void make_room_merges(vn_bpe *b)
{
	const size_t old = b->room_merges, room = old ? 2 * old : 1024;
	merge       *from = b->merge;

	if (2 * (b->n_merges + 1) <= old)
		return;
	merge *list = vn_alloc(room, sizeof *list);
	memset(list, 0xff, room * sizeof *list);
	b->merge = list;
	b->room_merges = room;
	for (size_t i = 0; i < old; i++)
		if (from[i].left >= 0)
			list[slot_of_pair(b, from[i].left, from[i].right)] = from[i];
	free(from);
}

static vn_status not_there(const char *text, size_t n, vn_error *err)
{
	return vn_fail(err, VN_ERR_FORMAT, "'%.*s' is not in the vocabulary", vn_bpe_quoted(n), text);
}

vn_status vn_bpe_add_merge(vn_bpe *b, const char *left, size_t n_left, const char *right, size_t n_right, vn_error *err)
{
	char      both[512], *text = both;
	merge     m = { vn_bpe_find(b, left, n_left), vn_bpe_find(b, right, n_right), b->next_rank, -1 };
	vn_status st = VN_OK;

	if (m.left < 0)
		return not_there(left, n_left, err);
	if (m.right < 0)
		return not_there(right, n_right, err);
	if (n_left + n_right > sizeof both)
		text = vn_alloc(n_left + n_right, 1);
	memcpy(text, left, n_left);
	memcpy(text + n_left, right, n_right);
	if ((m.id = vn_bpe_find(b, text, n_left + n_right)) < 0)
		st = not_there(text, n_left + n_right, err);
	else if (b->next_rank == INT32_MAX)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "more than %d merges", INT32_MAX);
	if (text != both)
		free(text);
	if (st)
		return st;
	make_room_merges(b);
	merge *slot = &b->merge[slot_of_pair(b, m.left, m.right)];
	b->n_merges += slot->left < 0;
	*slot = m;
	b->next_rank++;
	return VN_OK;
}

/* ---- one piece ----------------------------------------------------------------- */

/* A symbol of the current piece. Neighbours are indices; -1: none. */
struct vn_bpe_symbol {
	int32_t id, before, after; /* id -1: merged into the symbol before */
};

/* A candidate merge of the symbol at `at` with the next one. It is stale if either
 * has changed since. */
struct vn_bpe_pair {
	uint64_t     key; /* rank, then place: lowest rank first, then leftmost */
	const merge *m;
};

typedef struct vn_bpe_symbol symbol;
typedef struct vn_bpe_pair   symbol_pair;

void vn_ids_add(vn_ids *list, int32_t id)
{
	list->id = grow_list(list->id, list->n + 1, &list->room, sizeof *list->id);
	list->id[list->n++] = id;
}

void vn_bpe_work_finish(vn_bpe_work *w)
{
	VN_FREE(w->symbol, w->heap, w->text);
	*w = (vn_bpe_work) { 0 };
}

static vn_status make_room(vn_bpe_work *w, size_t n, vn_error *err)
{
	size_t room = w->room ? w->room : 64;

	if (n <= w->room)
		return VN_OK;
	if (n > INT32_MAX / 4)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "a piece of %zu bytes is too long", n);
	while (room < n)
		room *= 2;
	vn_bpe_work_finish(w);
	/* A merge removes one pair from the heap and adds at most two, so 2n suffice. */
	w->symbol = vn_alloc(room, sizeof *w->symbol);
	w->heap = vn_alloc(2 * room, sizeof *w->heap);
	w->text = vn_alloc(2 * room, 1);
	w->room = room;
	return VN_OK;
}

static void push_pair(symbol_pair *heap, size_t *n, symbol_pair p)
{
	size_t i = (*n)++;

	for (; i > 0 && p.key < heap[(i - 1) / 2].key; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = p;
}

static symbol_pair pop_pair(symbol_pair *heap, size_t *n)
{
	const symbol_pair first = heap[0], last = heap[--*n];
	size_t            i = 0;

	for (size_t child; (child = 2 * i + 1) < *n; i = child) {
		if (child + 1 < *n && heap[child + 1].key < heap[child].key)
			child++;
		if (heap[child].key >= last.key)
			break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return first;
}

/* Adds the pair starting at `at` to the heap if it can merge. */
static void consider_pair(const vn_bpe *b, const symbol *s, int32_t at, symbol_pair *heap, size_t *n)
{
	if (at < 0 || s[at].after < 0)
		return;
	const merge *m = merge_of(b, s[at].id, s[s[at].after].id);
	if (m)
		push_pair(heap, n, (symbol_pair) { (uint64_t)m->rank << 32 | (uint32_t)at, m });
}

static void merge_all(const vn_bpe *b, symbol *s, size_t n, symbol_pair *heap)
{
	size_t pairs = 0;

	for (size_t i = 0; i + 1 < n; i++)
		consider_pair(b, s, (int32_t)i, heap, &pairs);
	while (pairs > 0) {
		const symbol_pair p = pop_pair(heap, &pairs);
		const int32_t     at = (int32_t)(p.key & UINT32_MAX), next = s[at].after;
		if (s[at].id != p.m->left || next < 0 || s[next].id != p.m->right)
			continue;
		s[at].id = p.m->id;
		s[at].after = s[next].after;
		s[next].id = -1;
		if (s[next].after >= 0)
			s[s[next].after].before = at;
		consider_pair(b, s, s[at].before, heap, &pairs);
		consider_pair(b, s, at, heap, &pairs);
	}
}

vn_status vn_bpe_encode(const vn_bpe *b, const char *bytes, size_t n, vn_bpe_work *w, vn_ids *out, vn_error *err)
{
	int32_t   whole;
	vn_status st = make_room(w, n, err);

	if (st || n == 0)
		return st;
	if (b->whole_first && (whole = vn_bpe_find(b, w->text, vn_bytelevel_write(w->text, bytes, n))) >= 0) {
		vn_ids_add(out, whole);
		return VN_OK;
	}
	for (size_t i = 0; i < n; i++) {
		const int32_t id = b->byte[(unsigned char)bytes[i]];
		if (id < 0)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "the vocabulary has no token for the byte 0x%02x",
			               (unsigned char)bytes[i]);
		w->symbol[i] = (symbol) { id, (int32_t)i - 1, i + 1 < n ? (int32_t)i + 1 : -1 };
	}
	merge_all(b, w->symbol, n, w->heap);
	for (int32_t i = 0; i >= 0; i = w->symbol[i].after)
		vn_ids_add(out, w->symbol[i].id);
	return VN_OK;
}
