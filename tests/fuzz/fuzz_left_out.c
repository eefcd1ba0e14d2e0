/* fuzz_left_out.c: any bytes as a line of /run/left_out: refused, or read, and then written and
 * read again with the same result. */
#include "capture/recording/left_out.h"
#include "tests/fuzz/mutate.h"

static char *text_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_left_out l, again;
	char       *text = text_of(data, size), *line;
	const char *why = vn_left_out_read(text, &l);

	free(text);
	if (why && (l.measure || !fuzz_one_line(why)))
		abort();
	if (why)
		return 0;
	if (!(line = vn_left_out_line(&l)) || vn_left_out_read(line, &again))
		abort();
	if (again.step != l.step || again.name != l.name || again.dtype != l.dtype || again.n != l.n ||
	    !vn_shape_equal(&again.shape, &l.shape) || strcmp(again.digest.hex, l.digest.hex) != 0)
		abort();
	vn_left_out_finish(&again);
	vn_left_out_finish(&l);
	free(line);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"{\"step\":0,\"name\":\"layer3.q_rope\",\"dtype\":\"f16\",\"shape\":[17,14,64],"
	"\"digest\":\"00112233445566778899aabbccddeeff\",\"reference\":\"ffeeddccbbaa99887766554433221100\","
	"\"measured\":{\"nmse\":4.2e-08,\"nonfinite\":0,\"scale\":0.5}}",
	"{\"step\":12,\"name\":\"logits\",\"dtype\":\"bf16\",\"shape\":[],\"digest\":\"00112233445566778899aabbccddeeff\","
	"\"reference\":\"00112233445566778899aabbccddeeff\",\"measured\":{}}",
};

int main(int argc, char **argv)
{
	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
