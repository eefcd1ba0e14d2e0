/* cmd_devices.c: `vernier devices`: the Vulkan devices of this machine. */
#include "libgpu/commands.h"
#include "libgpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static void print(const vn_gpu_device *d)
{
	printf("%d  %s\n", d->index, d->name);
	printf("   type     %s\n", d->type);
	printf("   api      Vulkan %s\n", d->api);
	printf("   driver   %s\n", d->driver[0] ? d->driver : "unknown");
	printf("   memory   %.1f GiB\n", (double)d->memory / (1024.0 * 1024.0 * 1024.0));
	if (d->missing[0])
		printf("   missing: %s\n", d->missing);
	else
		printf("   suitable\n");
}

int cmd_devices(int argc, char **argv)
{
	vn_error       err = { "" };
	vn_gpu_device *list = NULL;
	int            n = 0;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		puts("usage: vernier devices\n\n"
		     "The Vulkan devices of this machine, and what an unsuitable one lacks.");
		return 0;
	}
	if (argc > 1) {
		fprintf(stderr, "vernier devices: '%s': this command takes no arguments\n", argv[1]);
		return 2;
	}
	if (vn_gpu_devices(&list, &n, &err)) {
		fprintf(stderr, "vernier devices: %s\n", err.text);
		return 2;
	}
	for (int i = 0; i < n; i++)
		print(&list[i]);
	free(list);
	if (n == 0) {
		fprintf(stderr, "vernier devices: no Vulkan device on this machine\n");
		return 2;
	}
	return 0;
}
