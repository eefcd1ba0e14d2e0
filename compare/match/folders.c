/* folders.c: see folders.h. */
#include "compare/match/folders.h"

#include "libref/base/alloc.h"
#include "libref/base/glob.h"
#include "libref/base/order.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool vn_match_is_folder(const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

typedef enum path_kind { RECORDING, FOLDER, OTHER } path_kind;

/* Decides by name alone. A link to a file that was not fetched, or a pipe, then counts as a
 * recording that cannot be opened, instead of being skipped. */
static path_kind kind_of(const char *folder, const char *name)
{
	char      path[PATH_MAX];
	const int m = snprintf(path, sizeof path, "%s/%s", folder, name);
	if (name[0] != '.' && vn_glob_match("*.{h5,hdf5}", name))
		return RECORDING;
	return m > 0 && m < (int)sizeof path && vn_match_is_folder(path) ? FOLDER : OTHER;
}

static void add_name(vn_folder_pairs *p, const char *name, int side)
{
	int i = 0;

	while (i < p->n && strcmp(p->pair[i].name, name) != 0)
		i++;
	if (i == p->n) {
		p->pair = vn_alloc_resized(p->pair, (size_t)p->n + 1, sizeof *p->pair);
		p->pair[p->n++] = (vn_folder_pair) { .name = vn_alloc_text(name) };
	}
	p->pair[i].there[side] = true;
}

static vn_status list_folder(const char *folder, vn_folder_pairs *p, int side, vn_error *err)
{
	DIR                 *d = opendir(folder);
	const struct dirent *e;
	vn_status            st = VN_OK;
	if (!d)
		return vn_fail(err, VN_ERR_IO, "%s: %s", folder, strerror(errno));
	while ((errno = 0, e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		const path_kind k = kind_of(folder, e->d_name);
		if (k == RECORDING)
			add_name(p, e->d_name, side);
		p->folders[side] += k == FOLDER;
		p->others[side] += k == OTHER;
	}
	if (errno)
		st = vn_fail(err, VN_ERR_IO, "%s: %s", folder, strerror(errno));
	closedir(d);
	return st;
}

VN_ORDER_BY(compare_names, vn_folder_pair, strcmp(x->name, y->name))

vn_status vn_folder_pairs_of(const char *const *folder, int n, vn_folder_pairs *p, vn_error *err)
{
	vn_status st = VN_OK;
	*p = (vn_folder_pairs) { 0 };
	for (int i = 0; i < n && !st; i++)
		st = list_folder(folder[i], p, i, err);
	if (st)
		return st;
	if (p->n == 0)
		return n == 1 ? vn_fail(err, VN_ERR_NOTFOUND, "%s holds no recording (*.h5, *.hdf5)", folder[0])
		              : vn_fail(err, VN_ERR_NOTFOUND, "neither %s nor %s holds a recording (*.h5, *.hdf5)", folder[0],
		                        n == 2 ? folder[1] : "a candidate's folder");
	qsort(p->pair, (size_t)p->n, sizeof *p->pair, compare_names);
	return VN_OK;
}

VN_ORDER_BY(by_number, vn_folder_pair, vn_text_order(x->name, y->name))

void vn_folder_pairs_by_number(vn_folder_pairs *p)
{
	if (p->n)
		qsort(p->pair, (size_t)p->n, sizeof *p->pair, by_number);
}

void vn_folder_pairs_free(vn_folder_pairs *p)
{
	for (int i = 0; i < p->n; i++)
		free(p->pair[i].name);
	free(p->pair);
	*p = (vn_folder_pairs) { 0 };
}

static void print_count(int n, const char *what, FILE *out)
{
	if (n)
		vn_say(out, "%d %s%s", n, what, n == 1 ? "" : "s");
}

void vn_folder_left(const char *folder, int folders, int others, FILE *out)
{
	if (!folders && !others)
		return;
	fprintf(out, "ignored: ");
	print_count(folders, "folder", out);
	fputs(folders && others ? ", " : "", out);
	print_count(others, "other file", out);
	vn_say(out, " in %s\n", folder);
}

bool vn_folder_report(const char *path, const char *name, char *text)
{
	const char  *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	const size_t stem = dot && dot != path && dot[-1] != '/' ? (size_t)(dot - path) : strlen(path);
	const size_t k = strlen(name);
	/* a.h5, a.hdf5 and a.hdf5.h5 get separate reports */
	const bool   alike = k > 8 && strcmp(name + k - 8, ".hdf5.h5") == 0;
	const size_t cut = k > 3 && strcmp(name + k - 3, ".h5") == 0 && !alike ? 3 : 0;
	const int    n = snprintf(text, PATH_MAX, "%.*s.%.*s%s", (int)stem, path, (int)(k - cut), name, path + stem);
	return n > 0 && n < PATH_MAX;
}
