"""A toolkit to measure, as a program."""

# A toolkit that speaks the protocol and takes a second, or two in fp32, for everything.
TOY = """
import json, sys
request = json.load(sys.stdin)
if request["task"] == "variants":
    names = {"slow": "fp32", "quick": "bf16", "broken": "bf16"}
    answer = {"variants": [{"name": n, "precision": p} for n, p in names.items()]}
elif request["variant"] == "broken":
    sys.exit("it does not go")
else:
    print("a library says hello")
    seconds = 2.0 if request["variant"] == "slow" else 1.0
    answer = {"seconds": [seconds] * request["steps"], "memory": 1000, "loss": 1.0}
print(json.dumps(answer))
"""
