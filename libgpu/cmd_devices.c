/* cmd_devices.c: `vernier devices`: the Vulkan devices of this machine. */
#include "libgpu/commands.h"
#include "libgpu/suitable.h"
#include "libref/base/say.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

const vn_command vn_devices_command = {
	.name = "devices",
	.synopsis = "",
	.about =
		"List the Vulkan devices of this machine, and what an unsuitable one lacks. The number is what --device of "
		"capture, isolate and evaluate takes.",
	.examples = "vernier devices\n"
				"vernier capture gpu MODEL --device 1 --prompt @prompt.txt -o gpu.h5",
	.status = "0 listed, 2 trouble, or no device",
};

static void print_device(const vn_gpu_device *d)
{
	vn_say(stdout, "%d  %s\n", d->index, d->name);
	vn_say(stdout, "   type     %s\n", d->type);
	vn_say(stdout, "   api      Vulkan %s\n", d->api);
	vn_say(stdout, "   driver   %s\n", d->driver[0] ? d->driver : "unknown");
	vn_say(stdout, "   memory   %.1f GiB\n", (double)d->memory / (1024.0 * 1024.0 * 1024.0));
	if (d->missing[0])
		vn_say(stdout, "   missing: %s\n", d->missing);
	else
		vn_say(stdout, "   suitable\n");
}

int cmd_devices(int argc, char **argv)
{
	vn_error       err = { "" };
	vn_gpu_device *list = NULL;
	int            n = 0;

	const int said = vn_options_read(&vn_devices_command, argc, argv, NULL);
	if (said)
		return said == 1 ? 0 : 2;
	if (optind < argc)
		return vn_complain("devices", "'%s': this command takes no arguments", argv[optind]);
	if (vn_gpu_devices(&list, &n, &err)) {
		vn_say(stderr, "vernier devices: %s\n", err.text);
		return 2;
	}
	for (int i = 0; i < n; i++)
		print_device(&list[i]);
	free(list);
	if (n == 0) {
		fprintf(stderr, "vernier devices: no Vulkan device on this machine (Mesa's lavapipe needs no GPU: install "
		                "mesa-vulkan-drivers, on Arch vulkan-swrast, on openSUSE libvulkan_lvp)\n");
		return 2;
	}
	return 0;
}
