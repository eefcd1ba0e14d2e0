/* other_format.c: see other_format.h. */
#include "libref/model/other_format.h"
#include "libref/base/map.h"
#include "libref/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { BEGIN = 512 }; /* bytes; the mark of tar is at 257 */

#define CONVERT \
	"load it with transformers where you trust it, and model.save_pretrained('DIR', safe_serialization=True); give " \
	"DIR"
#define PICKLE "a PyTorch file (a pickle, which can run code) is not opened: " CONVERT

static const struct {
	const char *ending; /* NULL: any */
	size_t      at;
	const char *mark; /* NULL: the ending is enough */
	const char *says;
} formats[] = {
	{ NULL, 0, "\x1f\x8b", "compressed by gzip: unpack it (gunzip, or tar xf)" },
	{ NULL, 0,
	  "\xfd"
	  "7zXZ",
	  "compressed by xz: unpack it (unxz, or tar xf)" },
	{ NULL, 0, "\x28\xb5\x2f\xfd", "compressed by zstd: unpack it (unzstd, or tar xf)" },
	{ NULL, 0, "BZh", "compressed by bzip2: unpack it (bunzip2, or tar xf)" },
	{ NULL, 257, "ustar", "a tar archive: unpack it (tar xf)" },
	{ ".pt", 0, NULL, PICKLE },
	{ ".pth", 0, NULL, PICKLE },
	{ ".ckpt", 0, NULL, PICKLE },
	{ ".pkl", 0, NULL, PICKLE },
	{ ".bin", 0, "PK\3\4", PICKLE },
	{ NULL, 0, "\x80\x02", PICKLE },
	{ NULL, 0, "PK\3\4", "a zip archive: unpack it (unzip)" },
	{ ".onnx", 0, NULL,
	  "an ONNX graph is no model here: give the HuggingFace directory that it was exported from; what ONNX Runtime "
	  "computes is imported from .npz (vernier help dump.md)" },
	{ ".tflite", 0, NULL, "a TensorFlow Lite graph is no model here: give the HuggingFace directory" },
};

vn_status vn_other_format(const char *path, vn_error *err)
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
			return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s", path, formats[i].says);
	}
	return VN_OK;
}

vn_status vn_other_place(const char *path, int why, vn_error *err)
{
	static const char hub[] = "https://huggingface.co/";
	const bool        address = strstr(path, "://") != NULL, of_hub = strncmp(path, hub, sizeof hub - 1) == 0;
	const char       *name = of_hub ? path + sizeof hub - 1 : path, *slash = strchr(name, '/');

	if (why != ENOENT && !address)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(why));
	if (of_hub && slash && slash[1])
		return vn_fail(err, VN_ERR_NOTFOUND, "%s: vernier downloads nothing: hf download %.*s --local-dir DIR", path,
		               (int)(slash + 1 - name + (ptrdiff_t)strcspn(slash + 1, "/?#")), name);
	if (address)
		return vn_fail(err, VN_ERR_NOTFOUND, "%s: vernier downloads nothing: download it, and give the file or folder",
		               path);
	if (slash && slash != path && slash[1] && !strchr(slash + 1, '/') && *path != '.')
		return vn_fail(err, VN_ERR_NOTFOUND,
		               "%s: %s, and not in the cache of HuggingFace; vernier downloads nothing: hf download %s "
		               "--local-dir DIR",
		               path, strerror(why), path);
	return vn_fail(err, VN_ERR_NOTFOUND, "%s: %s; a model is a HuggingFace directory or a GGUF file", path,
	               strerror(why));
}
