/* object_header.c: see object_header.h. */
#include "capture/file/object_header.h"

#include "libref/base/utf8.h"

#include <string.h>
#include <unistd.h>

enum {
	DATASPACE = 1,
	DATATYPE = 3,
	FILL = 5,
	LAYOUT = 8,
	ATTRIBUTE = 12,
	CONTINUATION = 16,
	TIME = 18,
	ATTRIBUTE_INFO = 21,
	REFERENCE_COUNT = 22
};
enum { CONSTANT = 1, NOT_SHARED = 4 }; /* flags of messages */
enum { MOST_CHUNKS = 16, LEAST_COLLECTION = 4096 };

/* A range of bytes read from the front; `bad` is set for good once it is too short. */
typedef struct byte_range {
	const unsigned char *p;
	size_t               n;
	bool                 bad;
} byte_range;

static const unsigned char *take_bytes(byte_range *c, size_t n)
{
	const unsigned char *p = c->p;
	if (c->bad || n > c->n) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	c->n -= n;
	return p;
}

static uint64_t read_number(byte_range *c, size_t n) /* little-endian number of n bytes */
{
	const unsigned char *p = take_bytes(c, n);
	uint64_t             x = 0;
	for (size_t i = n; p && i-- > 0;)
		x = x << 8 | p[i];
	return x;
}

/* ---- the file ---------------------------------------------------------------------------- */

enum { FAR_BYTES = 1 << 13 };

/* n bytes from `at`, valid until the next read through this window. */
static const unsigned char *read_bytes(const vn_header_reader *r, vn_header_window *w, uint64_t at, size_t n)
{
	if (n > sizeof w->bytes / 2 || at > (uint64_t)r->bytes || n > (uint64_t)r->bytes - at)
		return NULL;
	if (at < w->at || at + n > w->at + w->n) {
		/* Headers close to each other are visited in any order. Far from the last header, between
		 * large tensors, there are no others to read ahead. */
		const bool   near = at + sizeof w->bytes > w->at && at < w->at + 2 * sizeof w->bytes;
		const size_t most = near || n > FAR_BYTES / 2 ? sizeof w->bytes : FAR_BYTES;
		w->at = at / (most / 2) * (most / 2);
		const ssize_t got = pread(r->fd, w->bytes, most, (off_t)w->at);
		w->n = got > 0 ? (size_t)got : 0;
		if (at + n > w->at + w->n)
			return NULL;
	}
	return w->bytes + (at - w->at);
}

static uint32_t rotate_left(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

uint32_t vn_header_checksum(const unsigned char *p, size_t n)
{
	uint32_t s[3], x[3];
	s[0] = s[1] = s[2] = 0xdeadbeefu + (uint32_t)n;
	for (; n > 0; p += 12) {
		const size_t  m = n < 12 ? n : 12;
		unsigned char twelve[12] = { 0 };
		memcpy(twelve, p, m);
		byte_range c = { twelve, sizeof twelve, false };
		for (int i = 0; i < 3; i++)
			s[i] += x[i] = (uint32_t)read_number(&c, 4);
		n -= m;
		if (n == 0)
			break;
		static const int mix[] = { 4, 6, 8, 16, 19, 4 };
		for (int i = 0; i < 6; i++) {
			const int a = i % 3, b = (i + 1) % 3, last = (i + 2) % 3;
			s[a] = (s[a] - s[last]) ^ rotate_left(s[last], mix[i]);
			s[last] += s[b];
		}
	}
	static const int end[] = { 14, 11, 25, 16, 4, 14, 24 };
	for (int i = 0; i < 7; i++) {
		const int to = (i + 2) % 3, from = (i + 1) % 3;
		s[to] = (s[to] ^ s[from]) - rotate_left(s[from], end[i]);
	}
	return s[2];
}

/* ---- messages ------------------------------------------------------------------------------- */

typedef struct header_reading {
	vn_header_reader          *r;
	const vn_header_attribute *list;
	int                        n;
	char                      *to;
	vn_object_header          *h;
	uint32_t                   met; /* bit i: message i */
	uint64_t                   chunk[MOST_CHUNKS], bytes[MOST_CHUNKS];
	int                        n_chunks;
	uint64_t                   messages;
} header_reading;

/* Dataspace versions 1 and 2; only simple and scalar ones of fixed size. */
static bool read_shape(byte_range c, vn_shape *s)
{
	const uint64_t version = read_number(&c, 1), rank = read_number(&c, 1), flags = read_number(&c, 1);
	const uint64_t kind = read_number(&c, 1);
	if (version == 1)
		take_bytes(&c, 4);
	if (c.bad || (version != 1 && version != 2) || rank > VN_MAX_RANK || flags > 1 ||
	    (version == 2 && kind != (rank > 0)))
		return false;
	*s = (vn_shape) { .rank = (int)rank };
	for (uint64_t i = 0; i < rank; i++) {
		const uint64_t d = read_number(&c, 8);
		if (d > INT64_MAX)
			return false;
		s->dim[i] = (int64_t)d;
	}
	for (uint64_t i = 0; i < rank && flags; i++)
		if (read_number(&c, 8) != (uint64_t)s->dim[i])
			return false;
	return !c.bad;
}

/* Datatype version 1, integers and floats. Messages of old headers end in zero padding. */
static bool read_type(byte_range c, vn_object_header *h)
{
	const size_t         bytes = c.n && c.p[0] == 0x10 ? 12 : c.n && c.p[0] == 0x11 ? 20 : 0;
	const unsigned char *p = take_bytes(&c, bytes);
	if (!p || !bytes || c.n >= 8)
		return false;
	memcpy(h->type, p, h->type_bytes = bytes);
	return true;
}

/* Layout versions 3 and 4, contiguous only. */
static bool read_layout(byte_range c, vn_object_header *h)
{
	const uint64_t version = read_number(&c, 1), kind = read_number(&c, 1);
	h->offset = read_number(&c, 8);
	h->stored = read_number(&c, 8);
	return !c.bad && (version == 3 || version == 4) && kind == 1;
}

/* Fill value versions 2 and 3. The flags of version 3 hold the allocation time, the write time, and
 * whether a value is undefined or given. */
static bool read_fill(byte_range c)
{
	const uint64_t version = read_number(&c, 1), first = read_number(&c, 1);
	if (version == 3)
		return !c.bad && first < 64 && (first & 3) && (first >> 2 & 3) < 3 && !(first & 32);
	const uint64_t time = read_number(&c, 1), given = read_number(&c, 1);
	return version == 2 && first >= 1 && first <= 3 && time < 3 &&
	       (given == 0 || (given == 1 && read_number(&c, 4) == 0)) && !c.bad;
}

/* Indexes all objects of the global heap collection at `at`. Duplicate object numbers, and free
 * space before the end, are left to HDF5. */
static bool read_collection(vn_header_reader *r, uint64_t at, vn_collection *h)
{
	const unsigned char *p;
	memset(h->object, 0, (size_t)h->n * sizeof *h->object);
	h->n = 0;
	h->whole = false;
	if (!(p = read_bytes(r, &r->heap, at, 16)) || memcmp(p, "GCOL\1\0\0\0", 8) != 0)
		return false;
	byte_range     all = { p + 8, 8, false };
	const uint64_t size = read_number(&all, 8);
	if (size < LEAST_COLLECTION || size > VN_HEADER_WINDOW / 2 || !(p = read_bytes(r, &r->heap, at, (size_t)size)))
		return false;
	h->at = at;
	h->n = 1;
	for (all = (byte_range) { p + 16, (size_t)size - 16, false }; all.n >= 16;) {
		const size_t   left = all.n;
		const uint64_t which = read_number(&all, 2);
		take_bytes(&all, 6);
		const uint64_t n = read_number(&all, 8);
		if (which == 0 && n == left)
			break;
		if (which == 0 || which >= VN_MOST_OBJECTS || n > all.n || h->object[which].from)
			return false;
		h->n = which < h->n ? h->n : which + 1;
		h->object[which].from = (uint32_t)(all.p - p);
		h->object[which].bytes = (uint32_t)n;
		if (!take_bytes(&all, (size_t)(n + 7) / 8 * 8))
			return false;
	}
	return h->whole = true;
}

/* The same, cached for recent collections; NULL: left to HDF5. */
static const vn_collection *find_collection(vn_header_reader *r, uint64_t at)
{
	for (int i = 0; i < VN_COLLECTIONS; i++)
		if (r->collection[i].whole && r->collection[i].at == at)
			return &r->collection[i];
	vn_collection *h = &r->collection[r->turn++ % VN_COLLECTIONS];
	return read_collection(r, at, h) ? h : NULL;
}

/* Reads object `index` of a global heap collection as a string. */
static bool read_string(const header_reading *g, byte_range data, char *to, size_t room)
{
	const uint64_t bytes = read_number(&data, 4), at = read_number(&data, 8), index = read_number(&data, 4);
	if (data.bad || bytes >= room)
		return false;
	to[bytes] = '\0';
	if (bytes == 0 && at == 0)
		return true;
	const vn_collection *h = index < VN_MOST_OBJECTS ? find_collection(g->r, at) : NULL;
	if (!h || !h->object[index].from || h->object[index].bytes != bytes)
		return false;
	const unsigned char *p = read_bytes(g->r, &g->r->heap, at + h->object[index].from, (size_t)bytes);
	if (!p)
		return false;
	memcpy(to, p, (size_t)bytes);
	vn_utf8_clean(to);
	return true;
}

const unsigned char vn_header_int[12] = { 0x10, 8, 0, 0, 8, 0, 0, 0, 0, 0, 64, 0 };
const unsigned char vn_header_real[20] = { 0x11, 0x20, 63, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3, 0, 0 };
const unsigned char vn_header_text[20] = { 0x19, 1, 1, 0, 16, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0 };

static bool is_type(vn_header_attribute_kind kind, const unsigned char *type, size_t bytes)
{
	enum { CHARSET = 2 };
	switch (kind) {
	case VN_ATTRIBUTE_TEXT: /* ASCII or UTF-8 */
		return bytes == sizeof vn_header_text && memcmp(type, vn_header_text, CHARSET) == 0 && type[CHARSET] <= 1 &&
		       memcmp(type + CHARSET + 1, vn_header_text + CHARSET + 1, bytes - CHARSET - 1) == 0;
	case VN_ATTRIBUTE_WHOLE: return bytes == sizeof vn_header_int && memcmp(type, vn_header_int, bytes) == 0;
	case VN_ATTRIBUTE_REAL: return bytes == sizeof vn_header_real && memcmp(type, vn_header_real, bytes) == 0;
	}
	return false;
}

static bool read_value(const header_reading *g, const vn_header_attribute *s, byte_range data)
{
	char *to = g->to + s->offset;
	if (s->kind == VN_ATTRIBUTE_TEXT)
		return read_string(g, data, to, s->room);
	const uint64_t x = read_number(&data, 8);
	memcpy(to, &x, sizeof x);
	return !data.bad;
}

/* Attribute versions 3 and 1. In version 1 fields are padded to multiples of eight. HDF5 parses
 * every attribute to find one, so attributes that are not looked for must have these types too. */
static bool read_attribute(header_reading *g, byte_range c)
{
	const uint64_t version = read_number(&c, 1), flags = read_number(&c, 1);
	const size_t   name_bytes = read_number(&c, 2), type_bytes = read_number(&c, 2), space_bytes = read_number(&c, 2);
	const size_t   to = version == 1 ? 8 : 1;
	const uint64_t charset = version == 3 ? read_number(&c, 1) : 0; /* ASCII or UTF-8 */
	vn_shape       shape;
	const char    *name = (const char *)take_bytes(&c, (name_bytes + to - 1) / to * to);
	const unsigned char *type = take_bytes(&c, (type_bytes + to - 1) / to * to),
						*space = take_bytes(&c, (space_bytes + to - 1) / to * to);
	vn_header_attribute_kind kind = VN_ATTRIBUTE_TEXT;
	if (c.bad || (version != 1 && version != 3) || flags || charset > 1 || strnlen(name, name_bytes) + 1 != name_bytes)
		return false;
	while (!is_type(kind, type, type_bytes))
		if (kind++ == VN_ATTRIBUTE_REAL)
			return false;
	if (!read_shape((byte_range) { space, space_bytes, false }, &shape) || shape.rank != 0 ||
	    c.n < (kind == VN_ATTRIBUTE_TEXT ? 16 : 8))
		return false;
	for (int i = 0; i < g->n; i++)
		if (strcmp(name, g->list[i].name) == 0) {
			if (g->h->found >> i & 1 || g->list[i].kind != kind || !read_value(g, &g->list[i], c))
				return false;
			g->h->found |= UINT32_C(1) << i;
		}
	return true;
}

/* Attributes stored outside the header: there must be none. */
static bool read_attribute_info(byte_range c)
{
	const uint64_t version = read_number(&c, 1), flags = read_number(&c, 1);
	take_bytes(&c, flags & 1 ? 2 : 0);
	for (uint64_t n = flags & 2 ? 3 : 2; n; n--) /* addresses: heap, name index, order index */
		if (read_number(&c, 8) != UINT64_MAX)
			return false;
	return version == 0 && flags <= 3 && !c.bad;
}

static bool read_message(header_reading *g, uint64_t type, uint64_t flags, byte_range c)
{
	if (flags & ~(uint64_t)(CONSTANT | NOT_SHARED))
		return false; /* stored elsewhere, or not for older readers */
	if (type == 0)
		return true;
	if (type < 32 && type != ATTRIBUTE && type != CONTINUATION && g->met >> type & 1)
		return false; /* twice */
	g->met |= type < 32 ? UINT32_C(1) << type : 0;
	switch (type) {
	case DATASPACE: return read_shape(c, &g->h->shape);
	case DATATYPE: return read_type(c, g->h);
	case FILL: /* applies to unwritten data, and all data is written */ return read_fill(c);
	case REFERENCE_COUNT: /* a tensor with two names */
		return c.n == 5 && c.p[0] == 0 && read_number(&(byte_range) { c.p + 1, 4, false }, 4) > 0;
	case TIME: return c.n >= 8 && c.p[0] == 1;
	case LAYOUT: return read_layout(c, g->h);
	case ATTRIBUTE: return read_attribute(g, c);
	case ATTRIBUTE_INFO: return read_attribute_info(c);
	case CONTINUATION:
		if (g->n_chunks == MOST_CHUNKS)
			return false;
		g->chunk[g->n_chunks] = read_number(&c, 8);
		g->bytes[g->n_chunks++] = read_number(&c, 8);
		return !c.bad;
	default: /* filters, external files, older or newer messages */ return false;
	}
}

/* head: size of a message header. Type, size and flags take 1, 2 and 1 bytes of it; in version 1
 * they take 2, 2 and 1 of its 8, and sizes are multiples of eight. In version 2 a chunk may end in
 * a gap too small for a message, if nothing else in it is unused. */
static bool read_messages(header_reading *g, byte_range c, size_t head)
{
	bool unused = false;
	while (c.n >= head) {
		const uint64_t type = read_number(&c, head == 8 ? 2 : 1), size = read_number(&c, 2), flags = read_number(&c, 1);
		take_bytes(&c, head == 8 ? 3 : head - 4);
		g->messages++;
		unused |= type == 0;
		const unsigned char *p = take_bytes(&c, (size_t)size);
		if (!p || (head == 8 && size % 8) || !read_message(g, type, flags, (byte_range) { p, (size_t)size, false }))
			return false;
	}
	return c.n == 0 || (head != 8 && !unused);
}

/* Whether n bytes are followed by their checksum. */
static bool has_checksum(const unsigned char *p, size_t n)
{
	byte_range c = { p + n, 4, false };
	return (uint32_t)read_number(&c, 4) == vn_header_checksum(p, n);
}

static bool read_new(header_reading *g, uint64_t address, const unsigned char *p)
{
	vn_header_window *w = &g->r->header;
	const unsigned    flags = p[5], size_bytes = 1u << (flags & 3);
	if (flags & 0xc0)
		return false;
	const size_t prefix = 6u + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0) + size_bytes;
	if (!(p = read_bytes(g->r, w, address, prefix)))
		return false;
	if (flags & 0x10) { /* limits on attributes: when to move them out of the header, and when back */
		byte_range     phase = { p + prefix - size_bytes - 4, 4, false };
		const uint64_t most = read_number(&phase, 2);
		if (read_number(&phase, 2) > most)
			return false;
	}
	byte_range     at = { p + prefix - size_bytes, size_bytes, false };
	const uint64_t size = read_number(&at, size_bytes);
	if (size > VN_HEADER_WINDOW / 4 || !(p = read_bytes(g->r, w, address, prefix + (size_t)size + 4)) ||
	    !has_checksum(p, prefix + (size_t)size) ||
	    !read_messages(g, (byte_range) { p + prefix, (size_t)size, false }, flags & 4 ? 6 : 4))
		return false;
	for (int i = 0; i < g->n_chunks; i++) { /* the loop may find more */
		const uint64_t n = g->bytes[i];
		if (n < 8 || n > VN_HEADER_WINDOW / 4 || !(p = read_bytes(g->r, w, g->chunk[i], (size_t)n)) ||
		    memcmp(p, "OCHK", 4) != 0 || !has_checksum(p, (size_t)n - 4) ||
		    !read_messages(g, (byte_range) { p + 4, (size_t)n - 8, false }, flags & 4 ? 6 : 4))
			return false;
	}
	return true;
}

/* Version 1 has no checksums, but states its number of messages. */
static bool read_old(header_reading *g, uint64_t address)
{
	vn_header_window    *w = &g->r->header;
	const unsigned char *p = read_bytes(g->r, w, address, 16);
	if (!p || p[0] != 1 || p[1] != 0)
		return false;
	byte_range     c = { p + 2, 14, false };
	const uint64_t messages = read_number(&c, 2);
	take_bytes(&c, 4);
	g->chunk[0] = address + 16;
	g->bytes[0] = read_number(&c, 4);
	g->n_chunks = 1;
	for (int i = 0; i < g->n_chunks; i++)
		if (g->bytes[i] > VN_HEADER_WINDOW / 4 || !(p = read_bytes(g->r, w, g->chunk[i], (size_t)g->bytes[i])) ||
		    !read_messages(g, (byte_range) { p, (size_t)g->bytes[i], false }, 8))
			return false;
	return g->messages == messages;
}

static bool read_chunks(header_reading *g, uint64_t address)
{
	const unsigned char *p = read_bytes(g->r, &g->r->header, address, 6);
	return p && memcmp(p, "OHDR\2", 5) == 0 ? read_new(g, address, p) : read_old(g, address);
}

bool vn_object_header_read(vn_header_reader *r, uint64_t address, const vn_header_attribute *list, int n, void *to,
                           vn_object_header *h)
{
	const uint32_t needed = 1u << DATASPACE | 1u << DATATYPE | 1u << LAYOUT;
	header_reading g = { .r = r, .list = list, .n = n, .to = to, .h = h };
	*h = (vn_object_header) { 0 };
	return read_chunks(&g, address) && (g.met & needed) == needed;
}
