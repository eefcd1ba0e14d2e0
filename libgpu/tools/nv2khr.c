/* nv2khr.c: a tool of the build: converts glslc's cooperative matrices to those of Vulkan.
 *
 *   nv2khr IN.spv OUT.spv SHARED [halves]
 *
 * Debian 12's glslc knows only GL_NV_cooperative_matrix, which devices run slowly or not at all.
 * This turns a module with SPV_NV_cooperative_matrix into one with SPV_KHR_cooperative_matrix. The
 * extensions differ in the numbers of their instructions, in the layout of a load or store (a bool
 * there, a number here, and behind the stride there) and in a type's last operand, the use of the
 * matrix. The source tells the use by the dimensions (shaders/coop.glsl): N is written N + 1024 and
 * K is K + 2048, so that A is M x K+2048, B is K+2048 x N+1024 and an accumulator is M x N+1024.
 *
 * A module with more than SHARED bytes of workgroup memory is refused: some drivers build a
 * pipeline from it, and lose the device when it runs. A module whose matrices would be in memory,
 * not in registers, is also refused.
 *
 * halves: the module requests that conversions to half round to nearest, ties to even, and keep
 * subnormals. GLSL has no way to request this.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1 << 19, IDS = 1 << 18, HEAD = 5, TAG_N = 1024, TAG_K = 2048 };

enum {
	OP_EXTENSION = 10,
	OP_ENTRY_POINT = 15,
	OP_EXECUTION_MODE = 16,
	OP_CAPABILITY = 17,
	OP_TYPE_INT = 21,
	OP_TYPE_FLOAT = 22,
	OP_TYPE_VECTOR = 23,
	OP_TYPE_ARRAY = 28,
	OP_TYPE_POINTER = 32,
	OP_TRUE = 41,
	OP_FALSE = 42,
	OP_CONSTANT = 43,
	OP_VARIABLE = 59,
	OP_ACCESS_CHAIN = 65,
	WORKGROUP = 4,
	DENORM_PRESERVE = 4459,
	ROUNDING_MODE_RTE = 4462,
	DENORM_PRESERVE_CAPABILITY = 4464,
	ROUNDING_MODE_RTE_CAPABILITY = 4467,
	NV_CAPABILITY = 5357,
	NV_TYPE = 5358,
	NV_LOAD = 5359,
	NV_STORE = 5360,
	NV_MULADD = 5361,
	NV_LENGTH = 5362,
	KHR_CAPABILITY = 6022,
	KHR_TYPE = 4456,
	KHR_LOAD = 4457,
	KHR_STORE = 4458,
	KHR_MULADD = 4459,
	KHR_LENGTH = 4460
};

static const char *path;
static uint32_t    in[WORDS], out[2 * WORDS];
static size_t      n_in, n_out;

/* Indexed by id. bytes: size of a type, or of what a pointer points to; 0: another kind of id. */
static struct {
	uint32_t value, bytes;
	int      is_bool, is_constant, is_matrix;
} of[IDS];

static void fail(const char *form, ...)
{
	va_list a;

	fprintf(stderr, "nv2khr: %s: ", path);
	va_start(a, form);
	vfprintf(stderr, form, a);
	va_end(a);
	fputc('\n', stderr);
	exit(1);
}

static void read_module(void)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		fail("cannot be opened");
	n_in = fread(in, sizeof *in, WORDS, f);
	if (n_in == WORDS || fclose(f))
		fail("cannot be read, or is larger than %d words", WORDS);
	if (n_in < HEAD || in[0] != 0x07230203u || in[3] >= IDS / 2)
		fail("is not SPIR-V, or has more than %d ids", IDS / 2);
	for (size_t i = HEAD; i < n_in; i += in[i] >> 16)
		if (in[i] >> 16 == 0 || i + (in[i] >> 16) > n_in)
			fail("word %zu: an instruction that extends beyond the end of the file", i);
}

static void note_type(const uint32_t *at)
{
	switch (at[0] & 0xFFFF) {
	case OP_TYPE_INT:
	case OP_TYPE_FLOAT: of[at[1]].bytes = at[2] / 8; break;
	case OP_TYPE_VECTOR: of[at[1]].bytes = of[at[2]].bytes * at[3]; break;
	case OP_TYPE_ARRAY: of[at[1]].bytes = of[at[2]].bytes * of[at[3]].value; break;
	case OP_TYPE_POINTER:
		of[at[1]].bytes = of[at[3]].bytes;
		of[at[1]].is_matrix = of[at[3]].is_matrix;
		break;
	case OP_CONSTANT:
		of[at[2]].value = at[3];
		of[at[2]].is_constant = 1;
		break;
	case NV_TYPE: of[at[1]].is_matrix = 1; break;
	case OP_TRUE:
	case OP_FALSE:
		of[at[2]].is_bool = 1;
		of[at[2]].value = (at[0] & 0xFFFF) == OP_TRUE;
		break;
	default: break;
	}
}

/* A type whose size is not known here (a struct, for example) is an error, not 0 bytes. */
static uint32_t shared_bytes(void)
{
	uint32_t sum = 0;

	for (size_t i = HEAD; i < n_in; i += in[i] >> 16)
		if ((in[i] & 0xFFFF) == OP_VARIABLE && in[i + 3] == WORKGROUP) {
			if (!of[in[i + 1]].bytes)
				fail("shared memory of a type other than numbers, vectors and arrays of them");
			sum += of[in[i + 1]].bytes;
		}
	return sum;
}

/* Drivers keep an array of matrices in registers only where every index is a constant: a loop that
 * was not unrolled makes the shader eight times as slow. */
static void check_indices(void)
{
	for (size_t i = HEAD; i < n_in; i += in[i] >> 16)
		if ((in[i] & 0xFFFF) == OP_ACCESS_CHAIN && of[in[i + 1]].is_matrix)
			for (uint32_t k = 4; k < in[i] >> 16; k++)
				if (!of[in[i + k]].is_constant)
					fail("a matrix of an array whose index is not constant: a loop was not unrolled");
}

static void put_word(uint32_t word)
{
	if (n_out == 2 * WORDS)
		fail("grows past %d words", 2 * WORDS);
	out[n_out++] = word;
}

static void put_constant(uint32_t type, uint32_t id, uint32_t value)
{
	put_word(4u << 16 | OP_CONSTANT);
	put_word(type);
	put_word(id);
	put_word(value);
}

/* A row-major matrix is 0, a column-major one 1. */
static uint32_t layout_id(uint32_t first, uint32_t id)
{
	if (!of[id].is_bool)
		fail("a matrix whose layout is not constant");
	return first + of[id].value;
}

static void put_capability(uint32_t which)
{
	put_word(2u << 16 | OP_CAPABILITY);
	put_word(which);
}

/* Writes an execution mode for 16-bit numbers. */
static void put_mode(uint32_t entry, uint32_t mode)
{
	put_word(4u << 16 | OP_EXECUTION_MODE);
	put_word(entry);
	put_word(mode);
	put_word(16);
}

static void rewrite_module(int halves)
{
	uint32_t next = in[3], u32 = 0, first = 0; /* first: the ids of 0, 1 and 2, as layouts and as uses */
	uint32_t entry = 0;

	for (size_t i = 0; i < HEAD; i++)
		put_word(in[i]);
	for (size_t i = HEAD; i < n_in; i += in[i] >> 16) {
		const uint32_t *at = in + i, op = at[0] & 0xFFFF, words = at[0] >> 16;
		size_t          start = n_out;
		if (op == OP_TYPE_INT && at[2] == 32 && at[3] == 0)
			u32 = at[1];
		if (op == NV_TYPE) {
			const uint32_t rows = of[at[4]].value, columns = of[at[5]].value;
			const uint32_t use = columns >= TAG_K ? 0 : rows >= TAG_K ? 1 : 2;
			if (!u32)
				fail("a matrix before any 32-bit number");
			if (columns < TAG_N)
				fail("a matrix %u x %u whose use its dimensions do not tell", rows, columns);
			if (!first) {
				first = next;
				for (uint32_t k = 0; k < 3; k++)
					put_constant(u32, next++, k);
			}
			put_constant(u32, next, rows % TAG_N);
			put_constant(u32, next + 1, columns % TAG_N);
			put_word(7u << 16 | KHR_TYPE);
			put_word(at[1]);
			put_word(at[2]);
			put_word(at[3]);
			put_word(next++);
			put_word(next++);
			put_word(first + use);
			continue;
		}
		if (op == OP_ENTRY_POINT)
			entry = at[2];
		if (halves && op == OP_EXECUTION_MODE) {
			put_mode(entry, ROUNDING_MODE_RTE);
			put_mode(entry, DENORM_PRESERVE);
			halves = 0;
			start = n_out;
		}
		for (uint32_t k = 0; k < words; k++)
			put_word(at[k]);
		if (op == OP_CAPABILITY && at[1] == NV_CAPABILITY) {
			out[start + 1] = KHR_CAPABILITY;
			if (halves) {
				put_capability(ROUNDING_MODE_RTE_CAPABILITY);
				put_capability(DENORM_PRESERVE_CAPABILITY);
			}
		} else if (op == OP_EXTENSION && strcmp((const char *)(at + 1), "SPV_NV_cooperative_matrix") == 0) {
			memcpy(out + start + 1, "SPV_KHR_cooperative_matrix", 27); /* as many words */
		} else if (op == NV_LOAD) {                                    /* type, result, pointer, stride, column-major */
			out[start] = words << 16 | KHR_LOAD;
			out[start + 4] = layout_id(first, at[5]);
			out[start + 5] = at[4];
		} else if (op == NV_STORE) { /* pointer, object, stride, column-major */
			out[start] = words << 16 | KHR_STORE;
			out[start + 3] = layout_id(first, at[4]);
			out[start + 4] = at[3];
		} else if (op == NV_MULADD) {
			out[start] = words << 16 | KHR_MULADD;
		} else if (op == NV_LENGTH) {
			out[start] = words << 16 | KHR_LENGTH;
		}
	}
	if (!first)
		fail("has no cooperative matrix");
	out[3] = next;
}

int main(int argc, char **argv)
{
	if (argc != 4 && !(argc == 5 && strcmp(argv[4], "halves") == 0)) {
		fprintf(stderr, "usage: nv2khr IN.spv OUT.spv SHARED [halves]\n");
		return 2;
	}
	path = argv[1];
	read_module();
	for (size_t i = HEAD; i < n_in; i += in[i] >> 16)
		note_type(in + i);
	const uint32_t shared = shared_bytes();
	if (shared > strtoul(argv[3], NULL, 10))
		fail("%u bytes of shared memory, and a device may have no more than %s", shared, argv[3]);
	check_indices();
	rewrite_module(argc == 5);
	FILE *f = fopen(argv[2], "wb");
	if (f)
		fwrite(out, sizeof *out, n_out, f);
	if (!f || ferror(f) || fclose(f)) {
		remove(argv[2]);
		fail("%s cannot be written", argv[2]);
	}
	return 0;
}
