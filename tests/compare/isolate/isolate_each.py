#!/usr/bin/env python3
"""isolate_each.py VERNIER [FAMILY...]: is the operation at fault the one that isolate names?

A float32 run on the GPU in which one operation after the other, or two by chance, compute in half; limits that no half
can keep to. Prints how often the set found is the set of faults. Operations that half does not harm (a choice, a copy)
are counted apart.
"""
import json, os, random, subprocess, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
vernier = os.path.abspath(sys.argv[1])
families = sys.argv[2:] or ['gpt2', 'llama', 'mistral', 'qwen2', 'qwen3', 'qwen3_5_text']
LIMITS = 'version: 1\nname: tight\nrules:\n  - { match: "*", nmse: 1.0e-9, why: "far above float32, far below half" }\n'


def isolate(model, faults):
    run = subprocess.run([vernier, 'isolate', model, '--ids', '3,14,15,92,65,35,89,79', '--precision', 'f32',
                          '--reference-precision', 'f32',
                          '--limits', 'tight.yaml', '--format', 'json']
                         + [w for f in faults for w in ('--precision', 'f16@' + f)],
                         capture_output=True, text=True)
    if run.returncode == 2:
        sys.exit(f'{model} {faults}: {run.stderr}')
    return json.loads(run.stdout)


def operations(model):
    lines = subprocess.run([vernier, 'points', model], capture_output=True, text=True,
                           check=True).stdout.splitlines()[1:]
    return [line.split()[0] for line in lines if line.endswith('by default') and '_state' not in line.split()[0]]


def main():
    random.seed(5)
    bad = 0
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        open('tight.yaml', 'w').write(LIMITS)
        for family in families:
            model = os.path.join(here, '..', '..', '..', 'fixtures', family + '-trained')
            names = operations(model)
            pairs = [sorted(random.sample(names, 2), key=names.index) for _ in range(10)]
            right, harmless, runs = 0, 0, 0
            for faults in [[n] for n in names] + pairs:
                r = isolate(model, faults)
                runs += r['runs']
                found = r['sets'][0]['replaced'] if len(r['sets']) == 1 else [s['replaced'] for s in r['sets']]
                if r['verdict'] == 'good':
                    harmless += 1
                elif r['verdict'] == 'isolated' and (found == faults
                                                     or (len(faults) == 2 and len(found) == 1 and found[0] in faults)):
                    right += 1
                else:
                    print(f'  {family}: {faults} in half, found {r["verdict"]} {found}')
                    bad += 1
            n = len(names) + len(pairs)
            print(f'{family}: {right} of {n - harmless} named, {harmless} harmless, {runs / n:.1f} runs each of '
                  f'{r["operations"]} operations', flush=True)
    return bad > 0


sys.exit(main())
