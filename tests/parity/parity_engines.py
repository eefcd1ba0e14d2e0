"""parity_engines.py VERNIER: the helpers of vernier_parity with the engines that are installed: MLX, ONNX Runtime,
OpenVINO, llama-cpp-python, torchao, quanto, bitsandbytes; and KerasHub. A healthy run is within its limits against a
reference that follows it; one with a mistake is outside. Quantised models are judged by their dequantised weights.
Each engine that is not there is named as skipped.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = next(p for p in (os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE)))
            if os.path.isdir(os.path.join(p, "fixtures")))
FIXTURES = os.path.join(ROOT, "fixtures")
sys.path.insert(0, os.path.join(ROOT, "capture", "python"))
vernier = os.path.abspath(sys.argv[1])
bad = runs = tried = 0
os.environ.pop("PYTHON", None)  # a number, to tinygrad
os.environ.setdefault("DEV", "CPU")
try:
    import numpy as np
    import vernier_parity as vp
    from vernier_parity import quantised
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
with open(os.path.join(FIXTURES, "prompts", "p070.ids"), encoding="utf-8") as text:
    IDS = [int(i) for i in text.read().split(",")][:40]


def say(good, what):
    global bad, runs
    runs += 1
    bad += not good
    print("ok  " if good else "BAD ", what)


def judge(what, model, wrong=False, *options, declared=()):
    """cand.h5 against a reference that follows it. declared: options of compare alone."""
    made = subprocess.run([vernier, "capture", "ref", model, "--like", "cand.h5", *options, "-o", "ref.h5", "--force"],
                          capture_output=True, text=True)
    r = subprocess.run([vernier, "compare", "ref.h5", "cand.h5", *options, *declared, "--model", model],
                       capture_output=True, text=True)
    said = (r.stdout.strip().splitlines() or [(made.stderr + r.stderr).strip()])[-1]
    say(made.returncode == 0 and r.returncode == int(wrong), f"{what}: {said[:200]}")
    return r.stdout + r.stderr


def there(*names):
    global tried
    for name in names:
        try:
            importlib.import_module(name)
        except (ImportError, OSError) as e:
            print(f"skipped: {name}: {str(e).splitlines()[0]}")
            return False
    tried += 1
    return True


def quietly(f, *args, **kwargs):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        f(*args, **kwargs)
    return " ".join(str(w.message) for w in said)


def arrays():
    """Arrays that numpy does not take as they are."""
    made = {}
    if there("mlx.core"):
        import mlx.core as mx
        made["mlx"] = mx.array([[1.5, -2.0]] * 3).astype(mx.bfloat16), "bf16"
    if there("jax"):
        import jax.numpy as jnp
        made["jax"] = jnp.array([[1.5, -2.0]] * 3).astype(jnp.float8_e4m3fn), "f8_e4m3"
    if there("tinygrad"):
        from tinygrad import Tensor, dtypes
        made["tinygrad"] = Tensor([[1.5, -2.0]] * 3).cast(dtypes.bfloat16), "bf16"
    for name, (x, word) in made.items():
        with vp.Recorder("a.h5", engine=name, precision=word, token_ids=[1, 2, 3], force=True) as rec:
            rec.put("embed", x)
        rec = vp.open("a.h5")
        say(rec["embed"].tolist() == [[1.5, -2.0]] * 3 and rec.attributes("embed").get("dtype") == word,
            f"{name}: put of {word}")


def of_mlx():
    if not there("mlx.core", "mlx_lm"):
        return
    from pathlib import Path

    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache
    from mlx_lm.utils import load_model, quantize_model, save_config, save_model
    from vernier_parity import mlx

    def record(model, decode=False):
        cache = make_prompt_cache(model)
        with mlx.record(model, "cand.h5", force=True):
            for part in [IDS[:16], IDS[16:35], *([i] for i in IDS[35:])] if decode else [IDS]:
                model(mx.array(part)[None], cache=cache)

    for family in ("qwen2", "mistral", "gemma2"):
        source = os.path.join(FIXTURES, f"{family}-trained")
        model = load_model(Path(source))[0]
        record(model)
        judge(f"mlx {family}", source)
        record(model, True)
        judge(f"mlx {family}, chunks and decoding", source)
        model.set_dtype(mx.bfloat16)
        record(model)
        judge(f"mlx {family} in bfloat16", source)
    model = load_model(Path(os.path.join(FIXTURES, "qwen2-trained")))[0]
    model.layers[1].post_attention_layernorm.eps = 1e-2
    record(model)
    judge("mlx qwen2, another eps", os.path.join(FIXTURES, "qwen2-trained"), True)
    if not there("transformers"):
        return
    import torch
    import transformers
    torch.manual_seed(1)
    config = transformers.Qwen2Config(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=3,
                                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512)
    transformers.Qwen2ForCausalLM(config).save_pretrained("plain")
    with open("plain/config.json", "r+", encoding="utf-8") as f:
        about = {**json.load(f), "rope_theta": 10000.0}  # mlx-lm reads it there alone
        f.seek(0)
        json.dump(about, f)
        f.truncate()
    for bits in (2, 4, 8):
        model, about = load_model(Path("plain"))
        model.set_dtype(mx.float32)
        model, about = quantize_model(model, about, group_size=32, bits=bits)[:2]
        shutil.rmtree(f"mlx{bits}", ignore_errors=True)
        os.mkdir(f"mlx{bits}")
        save_model(Path(f"mlx{bits}"), model)
        save_config(about, Path(f"mlx{bits}/config.json"))
        r = subprocess.run([sys.executable, "-m", "vernier_parity", "dequantize", f"mlx{bits}", f"deq{bits}"],
                           capture_output=True, text=True, env={**os.environ, "PYTHONPATH": sys.path[0]})
        say(r.stdout == f"deq{bits}: 39 weights\n", f"mlx of {bits} bits: {r.stdout.strip()}{r.stderr.strip()}")
        model = load_model(Path(f"mlx{bits}"))[0]
        record(model)
        judge(f"mlx of {bits} bits", f"deq{bits}")
        model.layers[1].mlp.up_proj.scales = model.layers[1].mlp.up_proj.scales * 1.03
        record(model)
        judge(f"mlx of {bits} bits, scales 3 % too large", f"deq{bits}", True)


def of_onnx():
    if not there("onnx", "onnxruntime", "onnxscript", "transformers"):
        return
    import onnx as graphs
    import torch
    import transformers
    from vernier_parity import onnx

    source = os.path.join(FIXTURES, "qwen2-trained")
    model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32,
                                                              attn_implementation="eager").eval()

    class Alone(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = model

        def forward(self, input_ids):
            return self.m(input_ids=input_ids, use_cache=False).logits

    os.mkdir("onnx")
    torch.onnx.export(Alone(), (torch.arange(12)[None],), "onnx/model.onnx", dynamo=True, input_names=["input_ids"],
                      output_names=["logits"], verbose=False,
                      dynamic_shapes={"input_ids": {1: torch.export.Dim("T", min=2, max=500)}})
    shutil.copy(os.path.join(source, "config.json"), "onnx")
    feeds = {"input_ids": np.array([IDS])}
    quietly(onnx.run, "onnx/model.onnx", feeds, "cand.h5", force=True)
    judge("onnxruntime", source)
    if there("openvino"):
        said = quietly(onnx.run, "onnx/model.onnx", feeds, "cand.h5", engine="openvino", force=True)
        hint = vp.open("cand.h5").run["inference_precision"]
        say(("computes in" in said) == (hint != "f32"), f"openvino computes in {hint} unasked: {said[-120:]}")
        if hint == "bf16":
            judge("openvino in bfloat16, declared", source, declared=("--precision", "bf16", "--allow", "claims"))
        quietly(onnx.run, "onnx/model.onnx", feeds, "cand.h5", engine="openvino", force=True,
                options={"INFERENCE_PRECISION_HINT": "f32"})
        judge("openvino in float32", source)
    graph = graphs.load("onnx/model.onnx")
    for t in graph.graph.initializer:
        if t.name.endswith("layers.1.post_attention_layernorm.weight"):
            t.CopyFrom(graphs.numpy_helper.from_array(graphs.numpy_helper.to_array(t) * np.float32(1.01), t.name))
    os.mkdir("wrong")
    graphs.save(graph, "wrong/model.onnx")
    shutil.copy(os.path.join(source, "config.json"), "wrong")
    quietly(onnx.run, "wrong/model.onnx", feeds, "cand.h5", force=True)
    judge("onnxruntime, a norm's weight 1 % too large", source, True)
    try:
        onnx.run("onnx/model.onnx", {"ids": np.array([IDS])}, "x.h5")
        say(False, "feeds without input_ids")
    except vp.RecordingError as e:
        say("no input_ids" in str(e), f"feeds without input_ids: {e}")
    if not there("onnxruntime_genai"):
        return
    source = os.path.join(FIXTURES, "qwen3-trained")
    for kind in ("fp32", "int4"):
        subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", source, "-o", kind, "-p", kind,
                        "-e", "cpu", "-c", "cache"], capture_output=True, check=True)
        shutil.copy(os.path.join(source, "config.json"), kind)
    quietly(onnx.run, "fp32/model.onnx", feeds, "cand.h5", force=True)
    judge("onnxruntime, a graph of GenAI's builder", source)
    quantised.command("int4", "int4-plain")
    quietly(onnx.run, "int4/model.onnx", feeds, "cand.h5", force=True)
    graph = graphs.load("int4/model.onnx")
    levels = [a for n in graph.graph.node if n.op_type == "MatMulNBits" for a in n.attribute
              if a.name == "accuracy_level"]
    if any(a.i == 4 for a in levels):
        judge("onnxruntime, MatMulNBits of level 4", "int4-plain")
        quietly(onnx.run, "int4/model.onnx", feeds, "cand.h5", force=True, precision="f32")
        said = judge("onnxruntime, MatMulNBits of level 4, declared as f32", "int4-plain", True)
        say("--precision f32,linear=q8-inputs" in said, "the report says which formats clear it")
        levels[0].i = 1
        os.mkdir("int4-mixed")
        graphs.save(graph, "int4-mixed/model.onnx")
        shutil.copy(os.path.join(source, "config.json"), "int4-mixed")
        said = quietly(onnx.run, "int4-mixed/model.onnx", feeds, "cand.h5", force=True)
        say("accuracy_level 4" in said and vp.open("cand.h5").run["precision"] == "f32", "inputs of some are said")
    for a in levels:
        a.i = 1
    os.mkdir("int4-f32")
    graphs.save(graph, "int4-f32/model.onnx")
    shutil.copy(os.path.join(source, "config.json"), "int4-f32")
    quietly(onnx.run, "int4-f32/model.onnx", feeds, "cand.h5", force=True)
    judge("onnxruntime, MatMulNBits", "int4-plain")
    judge("onnxruntime, MatMulNBits against the model in float32", source, True)


def of_keras():
    os.environ.setdefault("KERAS_BACKEND", "torch")
    if not there("torch", "keras_hub"):
        return
    import keras_hub
    import torch
    source = os.path.join(FIXTURES, "qwen2-trained")
    model = keras_hub.models.CausalLM.from_preset(source, preprocessor=None, dtype="float32").backbone
    for what, wrong in (("", False), (", another eps", True)):
        if wrong:
            model.transformer_layers[1]._feedforward_layernorm.epsilon = 1e-2
            model.transformer_layers[1]._feedforward_layernorm._epsilon = 1e-2
        with torch.no_grad(), vp.Recorder("cand.h5", engine="keras-hub", precision="f32", token_ids=IDS,
                                          force=True) as rec:
            x = model.token_embedding(np.array([IDS]))
            rec.put("embed", x)
            for n, layer in enumerate(model.transformer_layers):
                x = layer(x)
                rec.put(f"layer{n}.output", x)
            rec.put("logits", model.token_embedding(model.layer_norm(x), reverse=True))
        judge(f"keras-hub{what}", source, wrong)


def of_torch():
    if not there("transformers"):
        return
    import torch
    import transformers
    source = os.path.join(FIXTURES, "qwen2-trained")

    def of_torchao(m):
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
        quantize_(m, Int8WeightOnlyConfig())
        return m.model.layers[1].mlp.up_proj.weight.scale

    def of_quanto(m):
        from optimum.quanto import freeze, qint8, quantize
        quantize(m, weights=qint8)
        freeze(m)
        return m.model.layers[1].mlp.up_proj.weight._scale

    def of_bitsandbytes(m):
        import bitsandbytes as b
        for module in list(m.model.layers.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, torch.nn.Linear):
                    new = b.nn.Linear8bitLt(child.in_features, child.out_features, child.bias is not None,
                                            has_fp16_weights=False)
                    new.load_state_dict(child.state_dict())
                    setattr(module, name, new.to("cpu"))
        return None

    for name, of in (("torchao", of_torchao), ("optimum.quanto", of_quanto), ("bitsandbytes", of_bitsandbytes)):
        if not there(name):
            continue
        m = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
        scale = of(m)
        with torch.no_grad():
            with vp.record(m, "cand.h5", force=True, weights=f"{name}-plain"):
                m(torch.tensor([IDS]))
            judge(name, f"{name}-plain")
            if scale is not None:
                scale.mul_(1.03)
                with vp.record(m, "cand.h5", force=True, weights=False):
                    m(torch.tensor([IDS]))
                judge(f"{name}, scales 3 % too large", f"{name}-plain", True)
    if there("torchao"):
        from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_
        m = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
        quantize_(m, Int8DynamicActivationInt8WeightConfig())
        with torch.no_grad():
            with vp.record(m, "cand.h5", force=True, weights="dynamic-plain"):
                m(torch.tensor([IDS]))
            judge("torchao, dynamic int8", "dynamic-plain")
            with vp.record(m, "cand.h5", force=True, weights=False, precision="f32"):
                m(torch.tensor([IDS]))
            said = judge("torchao, dynamic int8, declared as f32", "dynamic-plain", True)
            say("--precision f32,linear=int8-inputs" in said, "the report says which formats clear it")
            m.model.layers[1].mlp.up_proj.weight.scale.mul_(1.001)
            with vp.record(m, "cand.h5", force=True, weights=False):
                m(torch.tensor([IDS]))
            judge("torchao, dynamic int8, scales 0.1 % too large", "dynamic-plain", True)


def of_llama_cpp():
    if not there("llama_cpp", "gguf"):
        return
    import gguf
    from llama_cpp import Llama
    from vernier_parity import llama_cpp

    read = gguf.GGUFReader(os.path.join(FIXTURES, "gguf", "qwen2-trained.f16.gguf"))
    write = gguf.GGUFWriter("q.f32.gguf", "qwen2")  # whose products ggml computes in float32
    for key, field in read.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            kind = field.types[0]
            (write.add_array(key, field.contents()) if kind == gguf.GGUFValueType.ARRAY else
             write.add_key_value(key, field.contents(), kind))
    for t in read.tensors:
        a = gguf.dequantize(t.data, t.tensor_type).astype(np.float32)
        write.add_tensor(t.name, a.reshape(tuple(reversed(t.shape.tolist()))))
    write.write_header_to_file()
    write.write_kv_data_to_file()
    write.write_tensors_to_file()
    write.close()
    names = ("--names", "llama.cpp")
    for what, how in (("", {}), (" and flash attention", dict(flash_attn=True)),
                      (", cache in float32", dict(type_k=0, type_v=0))):
        llm = Llama("q.f32.gguf", n_ctx=256, verbose=False, **how)
        llm.eval(IDS[:5])
        with llama_cpp.record(llm, "cand.h5", force=True):
            llm.eval(IDS[:35])
            for i in IDS[35:]:
                llm.eval([i])
        say(llm.n_tokens == 5, "llama.cpp: the model is as before")
        judge(f"llama.cpp{what}", "q.f32.gguf", False, *names)
        llm.close()
    llm = Llama("q.f32.gguf", n_ctx=256, verbose=False, rope_freq_base=5000.0)
    with llama_cpp.record(llm, "cand.h5", force=True):
        llm.eval(IDS)
    judge("llama.cpp, another theta", "q.f32.gguf", True, *names)
    kept = llama_cpp.Tensor

    class Shifted(llama_cpp.c.Structure):
        pass
    Shifted._fields_ = [("new", llama_cpp.c.c_int64), *((n, llama_cpp.c.POINTER(Shifted) * 10 if n == "src" else t)
                                                        for n, t in kept._fields_)]
    llama_cpp.Tensor = Shifted
    try:
        with llama_cpp.record(llm, "x.h5"):
            pass
        say(False, "llama.cpp: a struct of another layout")
    except vp.RecordingError as e:
        say("lays out its tensors" in str(e), f"llama.cpp: a struct of another layout: {str(e)[:80]}")
    llama_cpp.Tensor = kept


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    for part in (arrays, of_mlx, of_onnx, of_keras, of_torch, of_llama_cpp):
        part()
    os.chdir(HERE)
print(f"{runs} checks, {bad} bad")
sys.exit(1 if bad else 0 if tried > 1 else 77)
