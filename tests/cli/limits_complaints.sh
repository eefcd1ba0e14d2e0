# Files of limits with one thing wrong: file, line, column, the rule, status 2.
try() { printf '%b' "$1" >x.yaml; echo "== $1"; vernier limits x.yaml >said; s=$?; head -n 4 said; echo "[$s]"; }
try 'version: 1\nname: x\ndefaults: { nmse: 1.0e-3 }\n'
try 'version: 1\nname: x\ndefaults: { nmsee: 1.0e-3 }\n'
try 'version: 1\nname: x\nrules:\n  - match: "layer*"\n    cosin: 0.9\n'
try 'version: 1\nname: x\nfoo: 3\n'
try 'version: 2\nname: x\n'
try 'version: 1\nname: x\ndefaults: { nmse: .nan }\n'
try 'version: 1\nname: x\ndefaults: { nmse: -1 }\n'
try 'version: 1\nname: x\ndefaults: { nmse: small }\n'
try 'version: 1\nname: x\nrules:\n  - cosine: 0.9\n'
try 'version: 1\nname: x\nrules:\n  - match: layer0.output\n    cosine: 0.9\n'
try 'version: 1\nname: x\nrules:\n  - match: layer0.output\n    cosine: 0.9\n    why: ""\n'
try 'version: 1\nname: x\nrules:\n  - { match: "layer{0", cosine: 0.9 }\n'
try 'version: 1\nname: x\ndefaults: { nmse: 1, nmse: 2 }\n'
try 'version: 1\nname: x\nextends: x.yaml\n'
try 'version: 1\nname: x\nextends: nowhere.yaml\n'
try 'version: 1\nname: x\ndefaults: [\n'
try '\tversion: 1\n'
try ''
echo "== what single metrics rest on"
try 'version: 1\nname: x\ndefaults: { nmse: 1.0e-3, why: a, why_of: { cosin: b } }\n'
try 'version: 1\nname: x\ndefaults: { nmse: 1.0e-3, why: a, why_of: { nmse: b, nmse: c } }\n'
try 'version: 1\nname: x\ndefaults: { nmse: 1.0e-3, why: a, why_of: b }\n'
try 'version: 1\nname: x\nrules:\n  - match: logits\n    nmse: 1.0e-3\n    headroom: 0.5\n'\
'    why: a\n    why_of: { headroom: b }\n'
vernier limits x.yaml logits
