/* other_format.c: see other_format.h. */
#include "libref/model/other_format.h"
#include "libref/base/map.h"
#include "libref/base/text.h"
#include "libref/model/hub.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BEGIN = 512 }; /* bytes; the mark of tar is at 257 */

#define PACKED "PK\3\4"

static const struct {
	const char *ending; /* NULL: any */
	size_t      at;
	const char *mark; /* NULL: the ending is enough */
	const char *says; /* NULL: a pickle */
} formats[] = {
	{ NULL, 0, "\x1f\x8b", "compressed by gzip: unpack it (gunzip, or tar xf)" },
	{ NULL, 0,
	  "\xfd"
	  "7zXZ",
	  "compressed by xz: unpack it (unxz, or tar xf)" },
	{ NULL, 0, "\x28\xb5\x2f\xfd", "compressed by zstd: unpack it (unzstd, or tar xf)" },
	{ NULL, 0, "BZh", "compressed by bzip2: unpack it (bunzip2, or tar xf)" },
	{ NULL, 0, "7z\xbc\xaf", "a 7z archive: unpack it (7z x)" },
	{ NULL, 257, "ustar", "a tar archive: unpack it (tar xf)" },
	{ ".pt", 0, NULL, NULL },
	{ ".pth", 0, NULL, NULL },
	{ ".ckpt", 0, NULL, NULL },
	{ ".pkl", 0, NULL, NULL },
	{ ".bin", 0, PACKED, NULL },
	{ NULL, 0, "\x80\x02", NULL },
	{ ".npz", 0, PACKED, "a dump of arrays: vernier import makes a recording of it" },
	{ NULL, 0, PACKED, "a zip archive: unpack it (unzip)" },
	{ ".onnx", 0, NULL,
	  "an ONNX graph, which is not read: a model is the HuggingFace directory that it was exported from; what ONNX "
	  "Runtime computes is imported from .npz (vernier help dump.md)" },
	{ ".json", 3, "schema\": \"vernier-", "a JSON report, not a recording: vernier report prints it" },
	{ ".html", 0, "<!doctype html", "an HTML page: open it in a browser" },
	{ ".tflite", 0, NULL, "a TensorFlow Lite graph is no model here: give the HuggingFace directory" },
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static vn_status refuse_pickle(const char *path, bool model, vn_error *err)
{
	return model ? vn_fail(err, VN_ERR_UNSUPPORTED,
	                       "%s: a PyTorch file (a pickle, which can run code) is not opened: load it with transformers "
	                       "where you trust it, and model.save_pretrained('DIR', safe_serialization=True); give DIR",
	                       path)
	             : vn_fail(err, VN_ERR_UNSUPPORTED,
	                       "%s: a pickle can run code and is not opened; convert it where it is trusted: python3 -c "
	                       "\"import torch, safetensors.torch as s; s.save_file({k: v.contiguous() for k, v in "
	                       "torch.load('%s', map_location='cpu').items()}, 'dump.safetensors')\", then vernier import "
	                       "dump.safetensors --like REF -o FILE.h5",
	                       path, strpbrk(path, "'\"\\$`") ? "FILE" : path);
}

/* Reads the first bytes. Returns how many; -1: it cannot be read. */
static ssize_t read_begin(const char *path, unsigned char begin[BEGIN])
{
	const int     fd = vn_plain_open(path, O_RDONLY);
	const ssize_t n = fd < 0 ? -1 : read(fd, begin, BEGIN);

	if (fd >= 0)
		close(fd);
	return n;
}

/* Does it have the mark of row i? */
static bool is_marked(int i, const unsigned char *begin, size_t n)
{
	const size_t bytes = strlen(formats[i].mark);
	return n >= formats[i].at + bytes && memcmp(begin + formats[i].at, formats[i].mark, bytes) == 0;
}

static bool is_letters(const char *mark)
{
	while (isalpha((unsigned char)*mark))
		mark++;
	return !*mark;
}

vn_status vn_other_format(const char *path, bool model, vn_error *err)
{
	unsigned char begin[BEGIN];
	const ssize_t got = read_begin(path, begin);
	const size_t  n = got > 0 ? (size_t)got : 0;

	if (got == 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: the file is empty: did its download fail?", path);
	if (n >= 4 && memcmp(begin, "GGUF", 4) == 0)
		return VN_OK;
	for (int i = 0; n && i < N_FORMATS; i++)
		if ((!formats[i].ending || vn_text_ends(path, formats[i].ending)) &&
		    (!formats[i].mark || is_marked(i, begin, n)))
			return formats[i].says ? vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s", path, formats[i].says)
			                       : refuse_pickle(path, model, err);
	return VN_OK;
}

/* A text may have any name, and even a zero byte; but not one beside a mark of letters. */
vn_status vn_other_text(const char *path, vn_error *err)
{
	static const struct {
		size_t      bytes;
		const char *mark, *is, *member; /* member: it may hold token ids, in this array of numpy */
	} others[] = {
		{ 6, "\x93NUMPY", "an array of numpy", "" },
		{ 4, PACKED, "a dump of arrays", "['input_ids']" },
		{ 4, "\x89HDF", "HDF5, as recordings are", NULL },
		{ 4, "\xff\xfe\0\0", "UTF-32", NULL },
		{ 4, "\0\0\xfe\xff", "UTF-32", NULL },
		{ 2, "\xff\xfe", "UTF-16", NULL },
		{ 2, "\xfe\xff", "UTF-16", NULL },
	};
	unsigned char begin[BEGIN];
	const ssize_t got = read_begin(path, begin);
	const size_t  n = got > 0 ? (size_t)got : 0; /* reading all of it will say why it cannot be read */

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (n < others[i].bytes || memcmp(begin, others[i].mark, others[i].bytes) != 0 ||
		    (*begin == 'P' && !vn_text_ends(path, ".npz")))
			continue;
		if (others[i].member)
			return vn_fail(err, VN_ERR_FORMAT,
			               "%s: %s, not text; if it holds token ids: python3 -c \"import numpy; "
			               "print(*numpy.load('%s')%s.ravel())\" >prompt.ids, then --ids @prompt.ids",
			               path, others[i].is, strpbrk(path, "'\"\\$`") ? "FILE" : path, others[i].member);
		return *begin == 0x89
		           ? vn_fail(err, VN_ERR_FORMAT, "%s: %s, not text: --ids-from %s takes the tokens of a recording",
		                     path, others[i].is, path)
		           : vn_fail(err, VN_ERR_FORMAT, "%s: %s, and a text is UTF-8: iconv -f %s -t UTF-8 %s", path,
		                     others[i].is, others[i].is, path);
	}
	for (int i = 0; i < N_FORMATS; i++)
		if (!formats[i].ending && is_marked(i, begin, n) && (!is_letters(formats[i].mark) || memchr(begin, 0, n)))
			return vn_fail(err, VN_ERR_FORMAT, "%s: %s", path,
			               formats[i].says ? formats[i].says : "a pickle, not text");
	return VN_OK;
}

/* What follows the address of the hub: "Qwen/Qwen2.5-0.5B/tree/main"; NULL: it is not there. */
static const char *below_hub(const char *path)
{
	static const char *const hubs[] = { "huggingface.co/", "hf.co/" };
	const char *const        host = strncmp(path, "https://", 8) == 0 ? path + 8 : path;

	for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++)
		if (strncmp(host, hubs[i], strlen(hubs[i])) == 0)
			return host + strlen(hubs[i]);
	return NULL;
}

vn_status vn_other_address(const char *path, int why, vn_error *err)
{
	const char *name = below_hub(path);
	size_t      n = name ? strcspn(name, "/?#") : 0; /* of the owner, or of a name without one */
	vn_nearest  near = { .word = path };

	if (n > 0) {
		char model[VN_NEAREST_MAX];
		n += name[n] == '/' && name[n + 1] && !strchr("/?#", name[n + 1]) ? 1 + strcspn(name + n + 1, "/?#") : 0;
		snprintf(model, sizeof model, "%.*s", (int)n, name);
		return vn_hub_has(model)
		           ? vn_fail(err, VN_ERR_NOTFOUND, "%s: give its name, which HuggingFace's cache has: %s", path, model)
		           : vn_fail(err, VN_ERR_NOTFOUND, "%s: vernier downloads nothing: hf download %s --local-dir DIR",
		                     path, model);
	}
	return strstr(path, "://")
	           ? vn_fail(err, VN_ERR_NOTFOUND,
	                     "%s: vernier downloads nothing: download it, and give the file or folder", path)
	           : vn_fail(err, VN_ERR_IO, "%s: %s%s", path, strerror(why),
	                     why == ENOENT ? vn_nearest_beside(&near, path) : "");
}

vn_status vn_other_place(const char *path, int why, vn_error *err)
{
	const char *slash = strchr(path, '/');
	vn_nearest  near;

	if (why != ENOENT || strstr(path, "://") || below_hub(path))
		return vn_other_address(path, why, err);
	if (slash && slash != path && slash[1] && !strchr(slash + 1, '/') && *path != '.') {
		vn_nearest_start(&near, path);
		vn_hub_nearest(&near);
		return vn_fail(err, VN_ERR_NOTFOUND,
		               "%s: %s, and not in the cache of HuggingFace%s; vernier downloads nothing: hf download %s "
		               "--local-dir DIR",
		               path, strerror(why), vn_nearest_hint(&near), path);
	}
	return vn_fail(err, VN_ERR_NOTFOUND,
	               "%s: %s%s; a model is a HuggingFace directory, a GGUF file or a name in HuggingFace's cache", path,
	               strerror(why), vn_nearest_beside(&near, path));
}
