/* hub.c: see hub.h. */
#include "libref/model/hub.h"
#include "libref/base/map.h"
#include "libref/base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the cache, as huggingface_hub finds it. */
static bool cache_folder(char path[PATH_MAX])
{
	static const struct {
		const char *variable, *below;
	} places[] = {
		{ "HF_HUB_CACHE", "" },
		{ "HF_HOME", "/hub" },
		{ "XDG_CACHE_HOME", "/huggingface/hub" },
		{ "HOME", "/.cache/huggingface/hub" },
	};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const char *value = getenv(places[i].variable);
		if (value && *value)
			return snprintf(path, PATH_MAX, "%s%s", value, places[i].below) < PATH_MAX;
	}
	return false;
}

/* "gpt2" has no owner. */
static bool is_name(const char *word)
{
	const char *slash = strchr(word, '/');

	return *word && slash != word && !(slash && (!slash[1] || strchr(slash + 1, '/'))) && *word != '.' &&
	       *word != '-' && !strstr(word, "..");
}

/* Returns the snapshot that the cache's branch main has; NULL: none. The caller frees it. */
static char *snapshot_of(const char *name)
{
	char         folder[PATH_MAX], file[PATH_MAX], *path = NULL;
	char         commit[80] = "";
	const size_t owner = strcspn(name, "/");
	const char  *gap = name[owner] ? "--" : "", *rest = name + owner + (name[owner] == '/');

	if (!cache_folder(folder) || snprintf(file, sizeof file, "%s/models--%.*s%s%s/refs/main", folder, (int)owner, name,
	                                      gap, rest) >= (int)sizeof file)
		return NULL;
	const int fd = vn_plain_open(file, O_RDONLY);
	if (fd >= 0) {
		const ssize_t n = read(fd, commit, sizeof commit - 1);
		commit[n > 0 ? n : 0] = '\0';
		close(fd);
	}
	commit[strcspn(commit, "\n")] = '\0';
	if (!*commit || strchr(commit, '/') || strchr(commit, '.') ||
	    !(path = vn_text_new("%s/models--%.*s%s%s/snapshots/%s", folder, (int)owner, name, gap, rest, commit)))
		return NULL;
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

void vn_hub_nearest(vn_nearest *n)
{
	static const char prefix[] = "models--";
	char              folder[PATH_MAX];
	DIR              *d = cache_folder(folder) ? opendir(folder) : NULL;

	for (const struct dirent *e; d && (e = readdir(d));) {
		const char *name = e->d_name + sizeof prefix - 1, *gap = NULL;
		char        said[VN_NEAREST_MAX];
		if (strncmp(e->d_name, prefix, sizeof prefix - 1) == 0 && (gap = strstr(name, "--")) &&
		    snprintf(said, sizeof said, "%.*s/%s", (int)(gap - name), name, gap + 2) < (int)sizeof said &&
		    strcmp(said, n->word) != 0)
			vn_nearest_try(n, said);
	}
	if (d)
		closedir(d);
}

const char *vn_hub_path(const char *word)
{
	const char *path = is_name(word) && access(word, F_OK) != 0 ? snapshot_of(word) : NULL;

	return path ? path : word;
}

bool vn_hub_has(const char *name)
{
	char      *path = is_name(name) ? snapshot_of(name) : NULL;
	const bool has = path != NULL;

	free(path);
	return has;
}

/* Are the free words of a command models? Behind capture, the first is the engine. */
static bool takes_models(char **argv, int i)
{
	static const char *const commands[] = { "capture", "evaluate", "isolate", "points", "weights" };
	bool                     takes = false;

	for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
		takes = takes || (i > (k == 0 ? 2 : 1) && strcmp(argv[1], commands[k]) == 0);
	return takes;
}

void vn_hub_replace(int argc, char **argv)
{
	static const char option[] = "--model=";

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const bool joined = strncmp(argv[i], option, sizeof option - 1) == 0;
		const bool value = strcmp(argv[i - 1], "--model") == 0;
		const bool free_word = value || (argv[i - 1][0] != '-' && (strchr(argv[i], '/') || takes_models(argv, i)));
		char      *word = joined ? argv[i] + sizeof option - 1 : argv[i];
		char      *path = joined || free_word ? (char *)vn_hub_path(word) : word, *whole = NULL;
		if (path != word && (!joined || (whole = vn_text_new("%s%s", option, path))))
			argv[i] = joined ? whole : path;
		if (joined && path != word)
			free(path);
	}
}
