/* fuzz_dump.c: any bytes as another engine's dump: .npz, .safetensors, GGUF,
 * or transformers' debugging tree.
 *
 * The first bytes tell the format; a tree's tensors are in a file beside it. The dump is refused
 * with one line, or every array has a name, a shape and numbers that can all be read, and the steps
 * hold the ids. */
#include "capture/import/dump.h"
#include "libref/base/dtype.h"
#include "tests/fuzz/mutate.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_FD = 100, BESIDE_FD = 101, MOST_BYTES = 1 << 24 };

/* A file for the input, and one beside it that a tree can name: "101". */
static void prepare(void)
{
	static const char header[] = "{\"data\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}   ";
	static bool       ready;
	char              beside[8 + sizeof header - 1 + 8] = { (char)(sizeof header - 1) };

	if (ready)
		return;
	ready = true;
	memcpy(beside + 8, header, sizeof header - 1);
	if (dup2(memfd_create("dump", 0), FILE_FD) < 0 || dup2(memfd_create("beside", 0), BESIDE_FD) < 0 ||
	    write(BESIDE_FD, beside, sizeof beside) != (ssize_t)sizeof beside)
		exit(2);
}

static vn_status open_kind(vn_dump *d, const uint8_t *data, size_t size, vn_error *err)
{
	if (size > 1 && memcmp(data, "PK", 2) == 0)
		return vn_dump_open_npz(d, err);
	if (size > 3 && memcmp(data, "GGUF", 4) == 0)
		return vn_dump_open_gguf(d, err);
	if (size && *data == '{')
		return vn_dump_open_tree(d, err);
	return vn_dump_open_safetensors(d, err);
}

static void read_array(vn_dump *d, int i)
{
	const vn_array *a = &d->array[i];
	const int64_t   count = vn_shape_count(&a->shape);
	const size_t    bytes = (size_t)count * vn_dtype_size(a->layout.dtype);
	vn_error        e = { "" };

	char dotted[VN_NAME_MAX];
	vn_dump_dotted(a->name, dotted);
	MUST(*a->name && !vn_dump_name_wrong(dotted) && a->step >= 0 && count >= 0);
	if (bytes > MOST_BYTES)
		return;
	void *to = malloc(bytes + 1);
	if (!to)
		exit(2);
	if (vn_dump_read(d, i, 0, bytes, to, &e))
		MUST(fuzz_one_line(e.text));
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_dump *d = calloc(1, sizeof *d);
	vn_error e = { "" };
	int64_t  tokens = 0;

	prepare();
	if (!d || !(d->path = strdup("/proc/self/fd/100")) || ftruncate(FILE_FD, 0) != 0 ||
	    (size && pwrite(FILE_FD, data, size, 0) != (ssize_t)size))
		exit(2);
	d->held = -1;
	if (open_kind(d, data, size, &e)) {
		MUST(fuzz_one_line(e.text));
	} else {
		for (int i = 0; i < d->n_steps; i++)
			tokens += d->step[i].tokens;
		MUST(tokens == d->n_ids);
		for (int i = 0; i < d->n; i++)
			read_array(d, i);
	}
	vn_dump_close(d);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
/* What needs a zip archive or a GGUF file is in the corpus. */
int main(int argc, char **argv)
{
	static const char *const seeds[] = {
		"{\"module_path\":\"M\",\"inputs\":{\"args\":[{\"shape\":\"[1, "
		"2]\",\"dtype\":\"f\",\"value\":\"./101\"}],\"kwargs\":{\"x\":{\"shape\":1,\"dtype\":1,\"value\":\"101\"}}},"
		"\"children\":[{\"module_path\":\"M.a\",\"outputs\":[{\"shape\":1,\"dtype\":1,\"value\":\"101\"}]}],"
		"\"outputs\":{\"logits\":{\"shape\":1,\"dtype\":1,\"value\":\"101\"}}}",
	};
	return fuzz_texts(argc, argv, seeds, 1);
}
#endif
