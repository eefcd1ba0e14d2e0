/* bulk.c: see bulk.h. */
#include "capture/file/bulk.h"

#include "capture/file/disk.h"
#include "capture/file/object_header.h"
#include "libref/base/order.h"

#include <stdlib.h>
#include <string.h>

/* Messages of an object header. */
enum { DATASPACE = 1, LINK_INFO = 2, DATATYPE = 3, FILL = 5, LINK = 6, LAYOUT = 8, GROUP_INFO = 10, ATTRIBUTE = 12 };
enum { ATTRIBUTE_INFO = 21, REFERENCE_COUNT = 22 };
/* Links that stay in a group's header; more of them go into an index. */
enum { FEW = 32 };
enum { HEADER = 1 << 13 };  /* most bytes of a header: few links of the longest names, or 16 attributes */
enum { STRETCH = 1 << 20 }; /* most bytes of the file that are written at a time */
enum { COLLECTION = 4096 }; /* of strings */
static const uint64_t NOWHERE = UINT64_MAX;

/* Bytes that are put together at p. */
typedef struct bulk_bytes {
	unsigned char *p;
	size_t         n, room;
	uint64_t       address; /* in the file */
} bulk_bytes;

struct vn_bulk {
	int            fd;
	const char    *path;
	vn_driver     *driver;
	vn_status      status;
	vn_error       err;
	unsigned char *stretch; /* bytes of the file at `at` that are not written yet */
	uint64_t       at;
	size_t         used;
	bulk_bytes     strings; /* a collection of the global heap, in the stretch; p NULL: none */
	unsigned       string;  /* the last object in it */
	bulk_bytes     object;  /* the header of the object that was begun */
	unsigned char  header[HEADER];
};

static void put(bulk_bytes *o, const void *bytes, size_t n)
{
	if (n > o->room - o->n) {
		o->room = o->n; /* full: header_address sees it */
		return;
	}
	memcpy(o->p + o->n, bytes, n);
	o->n += n;
}

static void put_number(bulk_bytes *o, uint64_t x, size_t bytes)
{
	unsigned char p[8];
	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)(x >> 8 * i);
	put(o, p, bytes);
}

static void put_checksum(bulk_bytes *o)
{
	put_number(o, vn_header_checksum(o->p, o->n), 4);
}

/* ---- the file -------------------------------------------------------------------------------- */

vn_bulk *vn_bulk_create(int fd, const char *path, vn_driver *d)
{
	vn_bulk *b = calloc(1, sizeof *b);
	if (b)
		*b = (vn_bulk) { .fd = fd, .path = path, .driver = d, .stretch = calloc(1, STRETCH) };
	if (!b || b->stretch)
		return b;
	free(b);
	return NULL;
}

void vn_bulk_destroy(vn_bulk *b)
{
	if (b)
		free(b->stretch);
	free(b);
}

static void fail(vn_bulk *b, vn_status st, const char *what)
{
	if (!b->status)
		b->status = vn_fail(&b->err, st, "%s: %s", b->path, what);
}

vn_status vn_bulk_status(const vn_bulk *b, vn_error *err)
{
	if (b->status && err)
		*err = b->err;
	return b->status;
}

/* What is left of a collection is its object 0. */
static void end_strings(vn_bulk *b)
{
	bulk_bytes *s = &b->strings;
	if (s->p && s->room - s->n >= 16) {
		const size_t left = s->room - s->n;
		put_number(s, 0, 8);
		put_number(s, left, 8);
	}
	*s = (bulk_bytes) { 0 };
}

vn_status vn_bulk_end(vn_bulk *b, vn_error *err)
{
	end_strings(b);
	if (!b->status && b->used)
		b->status = vn_write_at((vn_open_file) { b->fd, b->path }, "its structure", b->stretch, b->used, (int64_t)b->at,
		                        &b->err);
	memset(b->stretch, 0, b->used);
	b->used = 0;
	return vn_bulk_status(b, err);
}

/* n zeroed bytes at a place of the file behind the last ones, to be filled before the next call.
 * n <= STRETCH. */
static bulk_bytes room_at(vn_bulk *b, uint64_t at, size_t n)
{
	if (b->used && (at < b->at + b->used || at + n > b->at + STRETCH))
		vn_bulk_end(b, NULL);
	if (!b->used)
		b->at = at;
	b->used = (size_t)(at + n - b->at);
	return (bulk_bytes) { b->stretch + (at - b->at), 0, n, at };
}

static bulk_bytes allocate(vn_bulk *b, size_t n)
{
	return room_at(b, vn_driver_place(b->driver, n, false), n);
}

int64_t vn_bulk_place(vn_bulk *b, size_t bytes)
{
	if (!bytes)
		return 0;
	vn_bulk_end(b, NULL); /* a stretch that went on behind the place would be written over the numbers */
	return (int64_t)vn_driver_place(b->driver, bytes, true);
}

int64_t vn_bulk_numbers(vn_bulk *b, const void *numbers, size_t bytes)
{
	if (!bytes)
		return 0;
	bulk_bytes o = allocate(b, bytes);
	put(&o, numbers, bytes);
	return (int64_t)o.address;
}

/* ---- object headers -------------------------------------------------------------------------- */

static void put_message(bulk_bytes *o, unsigned type, size_t bytes, unsigned flags)
{
	put_number(o, type, 1);
	put_number(o, bytes, 2);
	put_number(o, flags, 1);
}

/* Flags 0x11: a size of two bytes; limits on attributes, of which 64 stay in the header. */
static void begin_header(vn_bulk *b)
{
	static const unsigned char begin[12] = { 'O', 'H', 'D', 'R', 2, 0x11, 64, 0, 0, 0 };
	b->object = (bulk_bytes) { b->header, 0, HEADER - 4, 0 };
	put(&b->object, begin, sizeof begin);
}

static void put_attribute_info(bulk_bytes *o)
{
	put_message(o, ATTRIBUTE_INFO, 18, 4);
	put_number(o, 0, 2);
	put_number(o, NOWHERE, 8);
	put_number(o, NOWHERE, 8);
}

static uint64_t end_header(vn_bulk *b)
{
	bulk_bytes *o = &b->object;
	if (o->n == o->room)
		fail(b, VN_ERR_FORMAT, "an object has too many attributes");
	put_number(&(bulk_bytes) { o->p + 10, 0, 2, 0 }, o->n - 12, 2);
	o->room = HEADER;
	put_checksum(o);
	bulk_bytes to = allocate(b, o->n);
	put(&to, o->p, o->n);
	return to.address;
}

void vn_bulk_begin_dataset(vn_bulk *b, const vn_shape *shape, const unsigned char *type, size_t type_bytes, int64_t at,
                           size_t bytes)
{
	bulk_bytes  *o = &b->object;
	const size_t rank = (size_t)shape->rank;

	begin_header(b);
	put_message(o, DATASPACE, 4 + 16 * rank, 0);
	put_number(o, 2, 1);
	put_number(o, rank, 1);
	put_number(o, rank > 0, 1); /* the largest sizes follow, which are the same */
	put_number(o, rank > 0, 1); /* simple, or a scalar */
	for (size_t i = 0; i < 2 * rank; i++)
		put_number(o, (uint64_t)shape->dim[i % rank], 8);
	put_message(o, DATATYPE, type_bytes, 1);
	put(o, type, type_bytes);
	put_message(o, FILL, 2, 1);
	put_number(o, 3 | 5 << 8, 2); /* allocated early, never filled */
	put_message(o, LAYOUT, 18, 1);
	put_number(o, 3 | 1 << 8, 2); /* contiguous */
	put_number(o, bytes ? (uint64_t)at : NOWHERE, 8);
	put_number(o, bytes, 8);
	put_attribute_info(o);
}

uint64_t vn_bulk_end_dataset(vn_bulk *b)
{
	return end_header(b);
}

static void put_attribute(vn_bulk *b, const char *name, const unsigned char *type, size_t type_bytes, const void *value,
                          size_t bytes)
{
	bulk_bytes  *o = &b->object;
	const size_t name_bytes = strlen(name) + 1;

	put_message(o, ATTRIBUTE, 9 + name_bytes + type_bytes + 4 + bytes, 0);
	put_number(o, 3, 2);
	put_number(o, name_bytes, 2);
	put_number(o, type_bytes, 2);
	put_number(o, 4, 2);
	put_number(o, 0, 1); /* an ASCII name */
	put(o, name, name_bytes);
	put(o, type, type_bytes);
	put_number(o, 2, 4); /* a scalar */
	put(o, value, bytes);
}

void vn_bulk_put_int(vn_bulk *b, const char *name, int64_t value)
{
	unsigned char x[8];
	put_number(&(bulk_bytes) { x, 0, 8, 0 }, (uint64_t)value, 8);
	put_attribute(b, name, vn_header_int, sizeof vn_header_int, x, 8);
}

void vn_bulk_put_real(vn_bulk *b, const char *name, double value)
{
	uint64_t      bits;
	unsigned char x[8];
	memcpy(&bits, &value, 8);
	put_number(&(bulk_bytes) { x, 0, 8, 0 }, bits, 8);
	put_attribute(b, name, vn_header_real, sizeof vn_header_real, x, 8);
}

void vn_bulk_put_text(vn_bulk *b, const char *name, const char *text)
{
	static const unsigned char zeros[8];
	const size_t               n = strlen(text), padded = (n + 7) / 8 * 8;
	unsigned char              x[16];
	bulk_bytes                *s = &b->strings, value = { x, 0, sizeof x, 0 };

	if (n > COLLECTION / 2) {
		fail(b, VN_ERR_FORMAT, "an attribute is too long");
		return;
	}
	if (!s->p || s->room - s->n < 16 + padded) {
		end_strings(b);
		*s = allocate(b, COLLECTION);
		put(s, "GCOL\1\0\0", 8);
		put_number(s, COLLECTION, 8);
		b->string = 0;
	}
	put_number(s, ++b->string, 8); /* and no references, as HDF5 has it */
	put_number(s, n, 8);
	put(s, text, n);
	put(s, zeros, padded - n);
	put_number(&value, n, 4);
	put_number(&value, s->address, 8);
	put_number(&value, b->string, 4);
	put_attribute(b, name, vn_header_text, sizeof vn_header_text, x, sizeof x);
}

/* ---- groups ---------------------------------------------------------------------------------- */

void vn_bulk_begin_group(vn_bulk *b, bool unnamed)
{
	begin_header(b);
	put_message(&b->object, GROUP_INFO, 6, 1);
	put_number(&b->object, 1 << 8, 2);
	put_number(&b->object, FEW, 2);
	put_number(&b->object, 0, 2);
	if (unnamed) {
		put_message(&b->object, REFERENCE_COUNT, 5, 0);
		put_number(&b->object, 0, 5);
	}
	put_attribute_info(&b->object);
}

static size_t link_bytes(const vn_bulk_link *l)
{
	return 3 + strlen(l->name) + 8;
}

/* A hard link with an ASCII name, as HDF5 writes it by default for any name. */
static void put_link(bulk_bytes *o, const vn_bulk_link *l)
{
	const size_t n = strlen(l->name);
	put_number(o, 1, 2);
	put_number(o, n, 1);
	put(o, l->name, n);
	put_number(o, l->address, 8);
}

/* A fractal heap of links. Its blocks are the first row of the table of blocks, or if there is one
 * only, the root. The table can be continued, but the room that is left in blocks is not noted. */
enum { SMALLEST = 512, LARGEST = 1 << 16, MOST_BLOCKS = 1 << 15, BLOCK_HEAD = 4 + 1 + 8 + 4 + 4, HEAP_ID = 7 };
enum { HEAP_HEAD = 14 + 12 * 8 + 2 + 2 * 8 + 2 + 2 + 8 + 2 + 4, HEAP_ROOM = (HEAP_HEAD + 63) / 64 * 64 };
typedef struct heap_size {
	size_t block, blocks, free; /* bytes of a block; how many; bytes without a link */
} heap_size;

static heap_size measure_heap(const vn_bulk_link *link, size_t n)
{
	heap_size s = { .blocks = 1 };
	size_t    used = BLOCK_HEAD, filled = 0;

	for (size_t i = 0; i < n; i++) {
		if (used + link_bytes(&link[i]) > LARGEST) {
			filled += used;
			used = BLOCK_HEAD;
			s.blocks++;
		}
		used += link_bytes(&link[i]);
	}
	for (s.block = s.blocks > 1 ? LARGEST : SMALLEST; s.block < used; s.block *= 2)
		;
	s.free = s.blocks * s.block - filled - used;
	return s;
}

static bulk_bytes begin_block(vn_bulk *b, const char *signature, uint64_t at, size_t bytes, uint64_t heap,
                              uint64_t offset)
{
	bulk_bytes o = room_at(b, at, bytes);
	put(&o, signature, 5);
	put_number(&o, heap, 8);
	put_number(&o, offset, 4);
	return o;
}

/* Links from number i on, as many as there is room for. The checksum covers the whole block, with
 * zeros in place of itself. Returns the number of the next. */
static size_t fill_block(bulk_bytes *o, const vn_bulk_link *link, size_t i, size_t n, uint64_t offset,
                         unsigned char (*id)[HEAP_ID])
{
	bulk_bytes sum = { o->p + o->n, 0, 4, 0 };

	put_number(o, 0, 4);
	for (; i < n && link_bytes(&link[i]) <= o->room - o->n; i++) {
		bulk_bytes to = { id[i], 0, HEAP_ID, 0 };
		put_number(&to, 0, 1);
		put_number(&to, offset + o->n, 4);
		put_number(&to, link_bytes(&link[i]), 2);
		put_link(o, &link[i]);
	}
	put_number(&sum, vn_header_checksum(o->p, o->room), 4);
	return i;
}

static void put_heap(bulk_bytes *o, const heap_size *s, size_t width, size_t n, uint64_t root)
{
	const bool     table = s->blocks > 1;
	const uint64_t all = s->blocks * s->block;

	put(o, "FRHP", 5);
	put_number(o, HEAP_ID, 2);
	put_number(o, 0, 2);       /* no filters */
	put_number(o, 2, 1);       /* blocks have checksums */
	put_number(o, 4096, 4);    /* largest object inside a block */
	put_number(o, 0, 8);       /* objects outside: none */
	put_number(o, NOWHERE, 8); /* their index */
	put_number(o, s->free, 8);
	put_number(o, NOWHERE, 8); /* where room is left */
	put_number(o, table ? width * s->block : s->block, 8);
	put_number(o, all, 8);
	put_number(o, all, 8); /* where the next block begins */
	put_number(o, n, 8);
	for (int i = 0; i < 4; i++) /* objects outside, or inside ids: bytes and number */
		put_number(o, 0, 8);
	put_number(o, width, 2);
	put_number(o, s->block, 8);
	put_number(o, LARGEST, 8);
	put_number(o, 32, 2); /* bits of an offset */
	put_number(o, 1, 2);  /* rows to begin with */
	put_number(o, root, 8);
	put_number(o, table, 2); /* rows */
	put_checksum(o);
}

/* Sets id[i], the place of link i in the heap. Returns the heap's address. */
static uint64_t write_heap(vn_bulk *b, const vn_bulk_link *link, size_t n, unsigned char (*id)[HEAP_ID])
{
	const heap_size s = measure_heap(link, n);
	size_t          width = 4, i = 0;

	while (width < s.blocks)
		width *= 2;
	if (width > MOST_BLOCKS) {
		fail(b, VN_ERR_FORMAT, "the names of one step take more than 2 GiB");
		return NOWHERE;
	}
	const size_t   table = s.blocks > 1 ? (BLOCK_HEAD + 8 * width + 63) / 64 * 64 : 0;
	const uint64_t heap = vn_driver_place(b->driver, HEAP_ROOM + table + s.blocks * s.block, false);
	const uint64_t block = heap + HEAP_ROOM + table;
	bulk_bytes     o = room_at(b, heap, HEAP_HEAD);
	put_heap(&o, &s, width, n, heap + HEAP_ROOM);
	if (table) {
		o = begin_block(b, "FHIB", heap + HEAP_ROOM, BLOCK_HEAD + 8 * width, heap, 0);
		for (size_t k = 0; k < width; k++)
			put_number(&o, k < s.blocks ? block + k * s.block : NOWHERE, 8);
		put_checksum(&o);
	}
	for (size_t k = 0; k < s.blocks; k++) {
		o = begin_block(b, "FHDB", block + k * s.block, s.block, heap, k * s.block);
		i = fill_block(&o, link, i, n, k * s.block, id);
	}
	return heap;
}

/* A B-tree of links by the hashes of their names. */
enum { NODE = 512, NODE_HEAD = 4 + 1 + 1 + 4, RECORD = 4 + HEAP_ID, MOST_LEVELS = 8 };
typedef struct link_index {
	vn_bulk            *b;
	const vn_bulk_link *link; /* sorted */
	unsigned char (*id)[HEAP_ID];
	/* Of a node of each level, from the leaves up: most records in it; most in it and below; bytes
	 * of that number in a pointer to it. */
	size_t most[MOST_LEVELS], total[MOST_LEVELS], width[MOST_LEVELS];
} link_index;

static void measure_tree(link_index *t)
{
	t->most[0] = t->total[0] = (NODE - NODE_HEAD) / RECORD;
	for (int l = 1; l < MOST_LEVELS; l++) {
		const size_t pointer = 8 + 1 + t->width[l - 1];
		t->most[l] = (NODE - NODE_HEAD - pointer) / (RECORD + pointer);
		t->total[l] = (t->most[l] + 1) * t->total[l - 1] + t->most[l];
		for (size_t x = t->total[l]; x; x >>= 8)
			t->width[l]++;
	}
}

static void put_records(bulk_bytes *o, const link_index *t, size_t i, size_t n)
{
	for (; n > 0; n--, i++) {
		put_number(o, t->link[i].hash, 4);
		put(o, t->id[i], HEAP_ID);
	}
}

static void put_tree_head(bulk_bytes *o, const char *signature)
{
	enum { LINKS_BY_NAME = 5 };
	put(o, signature, 5);
	put_number(o, LINKS_BY_NAME, 1);
}

/* Writes a node with links i to i + n - 1, and what is below. *records: those in the node itself.
 * Returns its address. */
static uint64_t write_node(const link_index *t, int level, size_t i, size_t n, size_t *records)
{
	struct {
		uint64_t at;
		size_t   records, all;
	} child[NODE / RECORD + 1];
	size_t     between[NODE / RECORD], children = 1;
	bulk_bytes o;

	if (level == 0) {
		o = allocate(t->b, NODE);
		put_tree_head(&o, "BTLF");
		put_records(&o, t, i, n);
		put_checksum(&o);
		*records = n;
		return o.address;
	}
	while (n - (children - 1) > children * t->total[level - 1])
		children++;
	for (size_t k = 0, left = n - (children - 1); k < children; k++) {
		child[k].all = left / (children - k);
		left -= child[k].all;
		child[k].at = write_node(t, level - 1, i, child[k].all, &child[k].records);
		i += child[k].all;
		if (k + 1 < children)
			between[k] = i++;
	}
	o = allocate(t->b, NODE);
	put_tree_head(&o, "BTIN");
	for (size_t k = 0; k + 1 < children; k++)
		put_records(&o, t, between[k], 1);
	for (size_t k = 0; k < children; k++) {
		put_number(&o, child[k].at, 8);
		put_number(&o, child[k].records, 1);
		put_number(&o, child[k].all, t->width[level - 1]);
	}
	put_checksum(&o);
	*records = children - 1;
	return o.address;
}

static uint64_t write_tree(vn_bulk *b, const vn_bulk_link *link, size_t n, unsigned char (*id)[HEAP_ID])
{
	enum { TREE_HEAD = 4 + 1 + 1 + 4 + 2 + 2 + 1 + 1 + 8 + 2 + 8 + 4 };
	link_index t = { .b = b, .link = link, .id = id };
	int        levels = 0;
	size_t     records;

	measure_tree(&t);
	while (t.total[levels] < n)
		levels++;
	const uint64_t root = write_node(&t, levels, 0, n, &records);
	bulk_bytes     o = allocate(b, TREE_HEAD);
	put_tree_head(&o, "BTHD");
	put_number(&o, NODE, 4);
	put_number(&o, RECORD, 2);
	put_number(&o, (unsigned)levels, 2);
	put_number(&o, 100, 1); /* per cent at which nodes are divided */
	put_number(&o, 40, 1);  /* and merged */
	put_number(&o, root, 8);
	put_number(&o, records, 2);
	put_number(&o, n, 8);
	put_checksum(&o);
	return o.address;
}

VN_ORDER_BY(order_links, vn_bulk_link, VN_ORDER(x->hash, y->hash), strcmp(x->name, y->name))

uint64_t vn_bulk_end_group(vn_bulk *b, vn_bulk_link *link, size_t n, const char **twice)
{
	uint64_t heap = NOWHERE, index = NOWHERE;

	for (size_t i = 0; i < n; i++)
		link[i].hash = vn_header_checksum((const unsigned char *)link[i].name, strlen(link[i].name));
	if (n)
		qsort(link, n, sizeof *link, order_links);
	for (size_t i = 1; i < n; i++)
		if (order_links(&link[i - 1], &link[i]) == 0)
			*twice = link[i].name;
	if (n > FEW) {
		unsigned char(*id)[HEAP_ID] = malloc(n * sizeof *id);
		if (id) {
			heap = write_heap(b, link, n, id);
			index = write_tree(b, link, n, id);
		} else {
			fail(b, VN_ERR_NOMEM, "no memory for links");
		}
		free(id);
	}
	put_message(&b->object, LINK_INFO, 18, 0);
	put_number(&b->object, 0, 2);
	put_number(&b->object, heap, 8);
	put_number(&b->object, index, 8);
	for (size_t i = 0; i < n && n <= FEW; i++) {
		put_message(&b->object, LINK, link_bytes(&link[i]), 0);
		put_link(&b->object, &link[i]);
	}
	return end_header(b);
}
