#!/usr/bin/env python3
"""fail_layer.py VERNIER LAYER [--all|--once] [--command NAME] [--function NAME] [--jobs N] [--budget SECONDS]

Lets every call of Vulkan that can fail do so: LAYER is built of fail_layer.c. First counts how often each command of
COMMANDS calls each function, then runs it again with the first, the middle and the last of these calls failing, once
or from there on, or with the device lost from there on. --all: every call, with every result that Vulkan allows the
function. --once: every call, one time, with one result. After each run:

  - it ended within a time limit, by no signal, and no library crashed
  - the exit status is 2; of what a command can do without (WITHOUT), it may be the undisturbed one
  - with 2 there is one line on stderr, with the number of the result
  - otherwise the standard output and every number recorded are the undisturbed ones, and stderr, too
  - no output file is there but the undisturbed one, or an incomplete recording under its temporary name, which opens

In `long`, the device still computes when a wait fails; in `discrete`, its memory is hidden from the host.

Also checks that the layer has every function of libgpu that returns a VkResult, with all results that Vulkan's registry
(vk.xml) allows it. Status 1 where anything was found; 77 without a Vulkan device.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import glob
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(SOURCE, "fixtures", "qwen2-trained")
GDN = os.path.join(SOURCE, "fixtures", "qwen3_5_text-trained")
REGISTRY = "/usr/share/vulkan/registry/vk.xml"
HEADERS = ["/usr/include/vulkan/vulkan_core.h"]
# Of extensions that libgpu does not use.
ELSEWHERE = {"VK_ERROR_INVALID_SHADER_NV", "VK_PIPELINE_COMPILE_REQUIRED_EXT", "VK_PIPELINE_COMPILE_REQUIRED",
             "VK_ERROR_UNKNOWN", "VK_ERROR_VALIDATION_FAILED", "VK_ERROR_VALIDATION_FAILED_EXT"}
SUCCESS, NOT_READY, TIMEOUT, INCOMPLETE, LOST = 0, 1, 2, 5, -4
HANG_S = 120

# Each does something with Vulkan that others do not. IN: the folder of what was made before.
COMMANDS = {
    "capture": "capture gpu MODEL --ids 5,6 -o out.h5",
    "cached": "capture gpu MODEL --ids 5,6 -o out.h5",  # with a pipeline cache of an earlier run
    "discrete": "capture gpu MODEL --ids 5,6 -o out.h5",  # weights are copied to the device
    "f32": "capture gpu MODEL --ids 5,6 --precision f32 --points * -o out.h5",
    # what the device computes when a wait fails takes it a while
    "long": "capture gpu MODEL --ids @IN/long.ids --precision f32 --points logits -o out.h5",
    "paged": "capture gpu MODEL --ids 5,6 --decode 2 --kv paged -o out.h5",
    "guard": "capture gpu MODEL --ids 5,6 --guard -o out.h5",
    "validate": "capture gpu MODEL --ids 5,6 --validate -o out.h5",
    "states": "capture gpu GDN --ids 5,6 --decode 1 -o out.h5",
    "against": "capture gpu MODEL --ids 5,6,7 --against IN/ref.h5 -o out.h5",
    "hybrid": "capture gpu MODEL --ids 5,6 --decode 1 --force-ref layer1.* -o out.h5",
    "mixed": "capture gpu MODEL --ids 5,6 --precision f16 --precision f32@layer0.* -o out.h5",
    "prompts": "capture gpu MODEL --prompts IN/prompts.jsonl -o out",
    "isolate": "isolate MODEL --ids 5,6 --inject R1@layer1.q_rope -o isolated.txt",
    "evaluate": "evaluate MODEL --ids 5,6,7,8 --candidate gpu -o evaluated.json",
    "devices": "devices",
}
SHORT = "capture", "discrete", "validate", "hybrid"  # without --all
# What a command does without: the shaders kept for the next run, the device's own times, names for
# a debugger. A wait that has not ended is repeated, as is a list that has become longer.
WITHOUT = {"GetPipelineCacheData", "GetQueryPoolResults", "SetDebugUtilsObjectNameEXT"}
REPEATED = {("WaitForFences", TIMEOUT), ("GetPipelineCacheData", INCOMPLETE), ("GetQueryPoolResults", NOT_READY)} | {
    (f, INCOMPLETE) for f in ("EnumerateInstanceExtensionProperties", "EnumerateDeviceExtensionProperties",
                              "EnumerateInstanceLayerProperties", "EnumeratePhysicalDevices",
                              "GetPhysicalDeviceCooperativeMatrixPropertiesKHR")}
# Results that mean that there is no driver: the line says so instead.
NO_DRIVER = {("CreateInstance", -9), ("EnumeratePhysicalDevices", -3)}


def called():
    """The names, without vk, of all functions of Vulkan that libgpu's source has."""
    names = set()
    for path in glob.glob(os.path.join(SOURCE, "libgpu", "*.[ch]")):
        with open(path) as f:
            text = f.read()
        names |= set(re.findall(r'"vk([A-Z]\w+)"|\bvn_vk\.([A-Z]\w+)|\bvk([A-Z]\w+)\s*\(', text))
        if path.endswith("vulkan.h"):
            macro = re.search(r"define VN_VULKAN_FUNCTIONS\(X\)((?:.*\\\n)*.*)", text)[1]
            names |= set((n,) for n in re.findall(r"X\((\w+)\)", macro))
    return {n for each in names for n in each if n}


def registry():
    """Of each function that returns a VkResult: the results that are allowed, as numbers. Without the registry, the
    names alone."""
    with open(next(p for p in HEADERS if os.path.exists(p))) as f:
        header = f.read()
    number = {n: int(v) for n, v in re.findall(r"\b(VK_\w+) = (-?\d+),", header)}
    number |= {n: number[v] for n, v in re.findall(r"\b(VK_\w+) = (VK_\w+),", header) if v in number}
    found = {n: None for n in re.findall(r"typedef VkResult \(VKAPI_PTR \*PFN_vk(\w+)\)", header)}
    if not os.path.exists(REGISTRY):
        return found
    for c in xml.etree.ElementTree.parse(REGISTRY).iter("command"):
        name = c.findtext("proto/name", "vk")[2:]
        words = (c.get("successcodes", "") + "," + c.get("errorcodes", "")).split(",")
        if name in found:
            found[name] = {number[w] for w in words if w and w not in ELSEWHERE} - {SUCCESS}
    return found


def check_table(table):
    """What the layer lacks."""
    known, wrong = registry(), []
    # of an extension that the headers of Debian 12 do not know
    known.setdefault("GetPhysicalDeviceCooperativeMatrixPropertiesKHR", None)
    needed = called() & set(known)
    assert len(needed) > 20, needed
    wrong += [f"{n}: libgpu calls it, the layer has it not" for n in sorted(needed - set(table))]
    wrong += [f"{n}: the layer has it, libgpu does not call it" for n in sorted(set(table) - needed)]
    wrong += [f"{n}: the layer gives {sorted(table[n])}, Vulkan allows {sorted(known[n])}"
              for n in sorted(needed & set(table)) if known[n] is not None and known[n] != set(table[n])]
    return wrong


class Layer:
    def __init__(self, vernier, layer):
        self.vernier, self.layer = os.path.abspath(vernier), os.path.abspath(layer)
        read = ctypes.CDLL(self.layer).vn_fail_layer_table
        read.restype = ctypes.c_char_p
        rows = [line.split() for line in read().decode().splitlines()]
        self.table = {name: [int(r) for r in results] for name, *results in rows}
        self.work = tempfile.mkdtemp(prefix="fail-layer-")
        self.made = os.path.join(self.work, "in")
        self.local = threading.local()
        self.base = {}
        # An implicit layer, which the loader finds in the user's folder of data.
        folder = os.path.join(self.work, "data", "vulkan", "implicit_layer.d")
        os.makedirs(folder)
        with open(os.path.join(folder, "fail.json"), "w") as f:
            json.dump({"file_format_version": "1.1.2", "layer": {
                "name": "VK_LAYER_VERNIER_fail", "type": "GLOBAL", "library_path": self.layer, "api_version": "1.3.0",
                "implementation_version": "1", "description": "a call fails",
                "functions": {"vkNegotiateLoaderLayerInterfaceVersion": "vn_fail_negotiate"},
                "pre_instance_functions": {"vkEnumerateInstanceExtensionProperties": "vn_fail_extensions",
                                           "vkEnumerateInstanceLayerProperties": "vn_fail_layers",
                                           "vkEnumerateInstanceVersion": "vn_fail_version"},
                "enable_environment": {"VN_LAYER": "1"}, "disable_environment": {"VN_LAYER_OFF": "1"}}}, f)

    def run(self, command, **fault):
        """Status (negative: the signal; None: a hang), stdout, stderr, the folder, how many calls failed, each
        function's count."""
        if not hasattr(self.local, "place"):
            self.local.place = tempfile.mkdtemp(prefix="job-", dir=self.work)
        place = self.local.place
        cwd, cache, tally = (os.path.join(place, n) for n in ("cwd", "cache", "tally"))
        shutil.rmtree(cwd, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cwd)
        if command == "cached" and os.path.exists(os.path.join(self.work, "cache")):
            shutil.copytree(os.path.join(self.work, "cache"), cache)
        with open(tally, "wb") as f:
            f.write(bytes(8 * (1 + len(self.table))))
        env = os.environ | dict(XDG_DATA_HOME=os.path.join(self.work, "data"), VN_LAYER="1", VN_LAYER_TALLY=tally,
                                # compiled shaders, with which a run takes a tenth of the time
                                MESA_SHADER_CACHE_DIR=os.path.join(self.work, "mesa"),
                                XDG_CACHE_HOME=cache, HOME=place, NO_COLOR="1", OMP_NUM_THREADS="1", LC_ALL="C.UTF-8",
                                OPENBLAS_NUM_THREADS="1", OPENBLAS_CORETYPE="Haswell", OMP_WAIT_POLICY="passive")
        env["VN_LAYER_DISCRETE"] = str(int(command == "discrete"))
        env |= {"VN_LAYER_" + k.upper(): str(v) for k, v in fault.items()}
        words = COMMANDS[command].split()
        for word, path in (("IN", self.made), ("MODEL", MODEL), ("GDN", GDN)):
            words = [re.sub(rf"^(@?){word}\b", rf"\g<1>{path}", w) for w in words]
        try:
            p = subprocess.run([self.vernier, *words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=HANG_S)
            status, said, complained = p.returncode, p.stdout, p.stderr
        except subprocess.TimeoutExpired as e:
            status, said, complained = None, e.stdout or b"", e.stderr or b""
        with open(tally, "rb") as f:
            counts = struct.unpack(f"<{1 + len(self.table)}Q", f.read())
        return (status, masked(said), masked(complained).decode(errors="replace"), cwd, counts[0],
                dict(zip(self.table, counts[1:])))

    def contents(self, path):
        """Every number of a file, as a digest; None where HDF5 cannot read it."""
        if not path.endswith((".h5", ".h5.partial")):
            with open(path, "rb") as f:
                return masked(f.read())
        read = subprocess.run([sys.executable, os.path.abspath(__file__), "--contents", path], capture_output=True)
        return read.stdout if read.returncode == 0 else None

    def files(self, cwd):
        return {os.path.relpath(os.path.join(d, n), cwd): os.path.join(d, n) for d, _, names in os.walk(cwd)
                for n in names}

    def prepare(self, commands):
        os.makedirs(self.made)
        subprocess.run([self.vernier, "capture", "ref", MODEL, "--ids", "5,6,7", "--precision", "f16", "-o", "ref.h5"],
                       cwd=self.made, stdout=subprocess.DEVNULL, check=True)
        with open(os.path.join(self.made, "prompts.jsonl"), "w") as f:
            f.write('{"name": "a", "ids": [5, 6], "decode": 1}\n{"name": "b", "ids": [7]}\n')
        with open(os.path.join(self.made, "long.ids"), "w") as f:
            f.write(",".join(str(i % 500) for i in range(500)))
        for command in commands:
            each = {}
            for _ in range(2):  # the first fills the caches; how often a wait is repeated depends on the machine
                status, said, complained, cwd, _, counts = self.run(command)
                each = {f: min(n, each.get(f, n)) for f, n in counts.items()}
                if command == "cached":
                    shutil.copytree(os.path.join(self.local.place, "cache"), os.path.join(self.work, "cache"),
                                    dirs_exist_ok=True)
            assert status in (0, 1), f"{command} undisturbed: status {status}\n{complained}"
            self.base[command] = dict(status=status, said=said, complained=complained, each=each,
                                      files={n: self.contents(p) for n, p in self.files(cwd).items()})

    def jobs(self, commands, functions, every, once):
        for command in commands:
            for function in functions:
                n = self.base[command]["each"][function]
                if n == 0:
                    continue
                places = range(1, n + 1) if every or once else sorted({1, (n + 1) // 2, n})
                # an error of the host's memory stands for all others
                results = self.table[function] if every else [r for r in self.table[function] if not once and
                                                              r in (TIMEOUT, INCOMPLETE, LOST)] + [
                    -1 if -1 in self.table[function] else self.table[function][0]]
                for at in places:
                    for result in dict.fromkeys(results):
                        base = dict(function=function, at=at, result=result)
                        yield command, base
                        if result < 0 and not once:
                            yield command, base | dict(sticky=1)
                        if result == LOST and not once:
                            yield command, base | dict(lost=1)

    def judge(self, command, fault, result):
        """The outcome, and what is wrong."""
        status, said, complained, cwd, failed, _ = result
        base, files = self.base[command], self.files(cwd)
        function, code = fault["function"], fault["result"]
        if status is None:
            return "hang", f"no end after {HANG_S} s"
        if status < 0:
            return "crash", signal.Signals(-status).name
        if re.search(r"crashed|gave up|runtime error|Sanitizer", complained):
            return "crash", "a library crashed" if "Sanitizer" not in complained else "a sanitizer's report"
        if failed == 0:
            return "idle", ""
        for name, path in files.items():
            contents = self.contents(path)
            if name.endswith(".partial") and name[:-8] in base["files"] and status == 2 and (
                    contents is not None or os.path.getsize(path) == 0):
                continue
            if contents != base["files"].get(name, "") and not (status == 2 and told(path)):
                return "wrong", f"{name} {'differs' if name in base['files'] else 'is left behind'}, status {status}"
        if status == 2:
            before = base["complained"].splitlines()  # of what was done before the call
            lines = [line for line in complained.splitlines() if line not in before]
            if len(lines) != 1:
                return "mute", f"{len(lines)} lines on stderr"
            if code < 0 and not re.search(r"\(-\d+\)", lines[0]) and (function, code) not in NO_DRIVER:
                return "mute", "the line does not say the result"
            # the loader asks for a device's extensions, too, and does not repeat it
            if (function, code) in REPEATED and function != "EnumerateDeviceExtensionProperties":
                return "wrong", "status 2"
            return "refused", ""
        if status != base["status"]:
            return "wrong", f"status {status} instead of {base['status']}"
        if function not in WITHOUT and (function, code) not in REPEATED:
            return "wrong", f"status {status} though a call failed"
        if said != base["said"] or complained != base["complained"] or set(files) != set(base["files"]):
            return "wrong", "another answer"
        return "right", ""


def told(path):
    """Does a report say that there was trouble?"""
    with open(path, "rb") as f:
        return b"trouble" in f.read()


def masked(said):
    said = re.sub(rb'\n *"device_ms": "[^"\n]*",?', b"", said)  # a report of a device with a clock has it
    return re.sub(rb"\d+(\.\d+)?(e[+-]\d+)? (ms|s|GB/s|MB/s|GB|MB|kB)\b", b"N", said)


def print_contents(path):
    import hashlib

    import h5py
    digest = hashlib.sha256()

    def put(name, o):
        if isinstance(o, h5py.Dataset):
            digest.update(repr((name, str(o.dtype), o.shape)).encode())
            digest.update(repr(o[()].tolist()).encode() if o.dtype.hasobject else o[()].tobytes())

    with h5py.File(path, "r") as f:
        f.visititems(put)
        print(digest.hexdigest(), int(f.attrs["complete"]))


def main():
    if sys.argv[1:2] == ["--contents"]:
        return print_contents(sys.argv[2])
    a = argparse.ArgumentParser()
    a.add_argument("vernier")
    a.add_argument("layer")
    a.add_argument("--all", action="store_true")
    a.add_argument("--once", action="store_true")
    a.add_argument("--command", action="append")
    a.add_argument("--function", action="append")
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--budget", type=float, default=1e9)
    a.add_argument("--list", action="store_true", help="print every run")
    a = a.parse_args()
    try:
        import h5py  # noqa: F401
    except ImportError:
        print("skipped: needs h5py")
        return 77

    begin = time.monotonic()
    layer = Layer(a.vernier, a.layer)
    wrong = check_table(layer.table)
    print("\n".join(wrong), end="\n" if wrong else "")
    commands = [c for c in COMMANDS if c in (a.command or (COMMANDS if a.all or a.once else SHORT))]
    functions = a.function or list(layer.table)
    counts, findings, left_out = collections.defaultdict(collections.Counter), len(wrong), 0
    try:
        if layer.run("devices")[0] == 2:
            print("skipped: no Vulkan device")
            return 1 if wrong else 77
        layer.prepare(commands)
        jobs = list(layer.jobs(commands, functions, a.all, a.once))
        random.Random(1).shuffle(jobs)
        uncalled = [f for f in functions if not any(layer.base[c]["each"][f] for c in commands)]
        print(f"{len(commands)} commands, {len(functions)} functions, {len(jobs)} failing calls; never called: "
              f"{' '.join(uncalled) or 'none'}", flush=True)

        def work(job):
            command, fault = job
            if time.monotonic() - begin > a.budget:
                return job, None, None, ""
            result = layer.run(command, **fault)
            return job, *layer.judge(command, fault, result), result[2]

        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            for (command, fault), outcome, why, complained in pool.map(work, jobs):
                left_out += outcome is None
                if outcome is None:
                    continue
                counts[fault["function"]][outcome] += 1
                bad = outcome not in ("right", "refused", "idle")
                findings += bad
                if bad or a.list:
                    print(f"{command}: " + " ".join(f"VN_LAYER_{k.upper()}={v}" for k, v in fault.items()) +
                          f": {outcome}, {why} {complained.strip()[-300:]!r}", flush=True)
    finally:
        shutil.rmtree(layer.work, ignore_errors=True)
    outcomes = "right", "refused", "idle", "crash", "hang", "wrong", "mute"
    print(f"\n{'function':48} {'failed':>7} " + " ".join(f"{o:>7}" for o in outcomes))
    for name in [n for n in layer.table if n in counts]:
        print(f"{name:48} {sum(counts[name].values()):7} " + " ".join(f"{counts[name][o]:7}" for o in outcomes))
    total = sum(counts.values(), collections.Counter())
    print(f"{'all':48} {sum(total.values()):7} " + " ".join(f"{total[o]:7}" for o in outcomes))
    print(f"{findings} findings in {time.monotonic() - begin:.0f} s ({left_out} left out for want of time)")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
