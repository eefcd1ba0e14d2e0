/* other_format.c: see other_format.h. */
#include "libref/model/other_format.h"
#include "libref/base/map.h"
#include "libref/base/text.h"
#include "libref/model/hub.h"

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
	{ ".tflite", 0, NULL, "a TensorFlow Lite graph is no model here: give the HuggingFace directory" },
};

static vn_status refuse_pickle(const char *path, bool model, vn_error *err)
{
	return model ? vn_fail(err, VN_ERR_UNSUPPORTED,
	                       "%s: a PyTorch file (a pickle, which can run code) is not opened: load it with transformers "
	                       "where you trust it, and model.save_pretrained('DIR', safe_serialization=True); give DIR",
	                       path)
	             : vn_fail(err, VN_ERR_UNSUPPORTED,
	                       "%s: a pickle can run code and is not opened; convert it where it is trusted: python3 -c "
	                       "\"import torch, safetensors.torch as s; s.save_file({k: v.contiguous() for k, v in "
	                       "torch.load('%s', map_location='cpu').items()}, 'dump.safetensors')\"",
	                       path, strpbrk(path, "'\"\\$`") ? "FILE" : path);
}

vn_status vn_other_format(const char *path, bool model, vn_error *err)
{
	unsigned char begin[BEGIN];
	const int     fd = vn_plain_open(path, O_RDONLY);
	const ssize_t got = fd < 0 ? -1 : read(fd, begin, sizeof begin);
	const size_t  n = got > 0 ? (size_t)got : 0;

	if (fd >= 0)
		close(fd);
	if (got == 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: the file is empty: did its download fail?", path);
	if (n >= 4 && memcmp(begin, "GGUF", 4) == 0)
		return VN_OK;
	for (size_t i = 0; n && i < sizeof formats / sizeof *formats; i++) {
		const char  *mark = formats[i].mark;
		const size_t bytes = mark ? strlen(mark) : 0;
		if ((!formats[i].ending || vn_text_ends(path, formats[i].ending)) && n >= formats[i].at + bytes &&
		    (!mark || memcmp(begin + formats[i].at, mark, bytes) == 0))
			return formats[i].says ? vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s", path, formats[i].says)
			                       : refuse_pickle(path, model, err);
	}
	return VN_OK;
}

vn_status vn_other_address(const char *path, int why, vn_error *err)
{
	static const char hub[] = "https://huggingface.co/";
	const bool        of_hub = strncmp(path, hub, sizeof hub - 1) == 0;
	const char       *name = path + sizeof hub - 1, *slash = of_hub ? strchr(name, '/') : NULL;

	if (slash && slash[1])
		return vn_fail(err, VN_ERR_NOTFOUND, "%s: vernier downloads nothing: hf download %.*s --local-dir DIR", path,
		               (int)(slash + 1 - name + (ptrdiff_t)strcspn(slash + 1, "/?#")), name);
	return strstr(path, "://")
	           ? vn_fail(err, VN_ERR_NOTFOUND,
	                     "%s: vernier downloads nothing: download it, and give the file or folder", path)
	           : vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(why));
}

vn_status vn_other_place(const char *path, int why, vn_error *err)
{
	const char *slash = strchr(path, '/');
	vn_nearest  near;

	if (why != ENOENT || strstr(path, "://"))
		return vn_other_address(path, why, err);
	if (slash && slash != path && slash[1] && !strchr(slash + 1, '/') && *path != '.') {
		vn_nearest_start(&near, path);
		vn_hub_nearest(&near);
		return vn_fail(err, VN_ERR_NOTFOUND,
		               "%s: %s, and not in the cache of HuggingFace%s; vernier downloads nothing: hf download %s "
		               "--local-dir DIR",
		               path, strerror(why), vn_nearest_hint(&near), path);
	}
	return vn_fail(err, VN_ERR_NOTFOUND, "%s: %s; a model is a HuggingFace directory or a GGUF file", path,
	               strerror(why));
}
