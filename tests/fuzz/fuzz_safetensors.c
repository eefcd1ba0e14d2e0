/* fuzz_safetensors.c: any bytes as a safetensors file.
 *
 * What opens must be readable without further checks: every byte of every tensor is read, every
 * name is found, and the tensors tile the data. */
#include "libref/model/safetensors.h"
#include "tests/fuzz/mutate.h"

#include <assert.h>

static volatile unsigned sum;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_safetensors *f = NULL;
	vn_error        e = { "" };
	vn_status       st = vn_safetensors_parse("fuzz", data, size, &f, &e);
	size_t          total = 0;

	if (st) { /* one clear line, and nothing left open */
		if (!fuzz_one_line(e.text) || f)
			abort();
		return 0;
	}
	for (size_t i = 0; i < vn_safetensors_count(f); i++) {
		const vn_source_tensor *t = vn_safetensors_at(f, i);
		if (vn_safetensors_find(f, t->name) != t || t->rank < 0 || t->rank > VN_SOURCE_MAX_RANK || t->data < data ||
		    t->data + t->bytes > data + size)
			abort();
		for (size_t j = 0; j < t->bytes; j++)
			sum += t->data[j];
		total += t->bytes;
	}
	if (total + 8 > size)
		abort();
	(void)vn_safetensors_meta(f, "provenance");
	vn_safetensors_close(f);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"{}",
	"{\"__metadata__\":{\"format\":\"pt\",\"provenance\":\"trained\"}}",
	"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"BF16\",\"shape\":[4],"
	"\"data_offsets\":[24,32]}}",
	("{\"s\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,2]},\"z\":{\"dtype\":\"F64\",\"shape\":[0,7],"
	 "\"data_offsets\":[2,2]}}   "),
	"{\"q\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]},\"r\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],"
	"\"data_offsets\":[3,6]}}",
	"{\"big\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
	"{\"a\":{\"dtype\":\"I8\",\"shape\":[1,1,1,1,1,1,1,2],\"data_offsets\":[0,2]},\"\\u00e4\":{\"dtype\":\"BOOL\","
	"\"shape\":[1],\"data_offsets\":[2,3]}}",
};
static const size_t data_bytes[] = { 0, 0, 32, 2, 6, 0, 3 };

static size_t make_seed(int i, uint8_t *out)
{
	const size_t n = strlen(seeds[i]);

	for (int j = 0; j < 8; j++)
		out[j] = (uint8_t)((uint64_t)n >> 8 * j);
	memcpy(out + 8, seeds[i], n);
	memset(out + 8 + n, 0x5a, data_bytes[i]);
	return 8 + n + data_bytes[i];
}

/* After a mutation the length word is wrong, and nothing after it would be read. Corrects it half
 * the time. */
static size_t repair(uint8_t *data, size_t size, uint64_t chance)
{
	if (chance % 2 == 0 || size < 8)
		return size;
	const uint8_t *end = NULL;
	for (size_t i = 8; i < size; i++)
		if (data[i] == '}')
			end = data + i + 1;
	if (end)
		for (int j = 0; j < 8; j++)
			data[j] = (uint8_t)((uint64_t)(end - data - 8) >> 8 * j);
	return size;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, (int)(sizeof seeds / sizeof *seeds), repair, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
