"""record_transformers.py MODEL IDS OUT: records MODEL in transformers, in float32, on ids separated by commas."""
import os
import sys

import torch
import transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "capture", "python"))
import vernier_parity  # noqa: E402

model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
with torch.no_grad(), vernier_parity.record(model, sys.argv[3]):
    model(torch.tensor([[int(i) for i in sys.argv[2].split(",")]]))
