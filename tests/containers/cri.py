"""Calls of the kubelet's interface to an engine: cri.py SOCKET

Each line of stdin is a method and its request, which is answered by a line: JSON objects whose fields have the
interface's own names; only those that the tests use are known. An error of the engine is answered with {"error": text}.
"""

import json
import sys

import grpc

NAMESPACES = {"network": 1, "pid": 2, "ipc": 3, "userns_options": (5, {
    "mode": 1,
    "uids": (2, {"host_id": 1, "container_id": 2, "length": 3}),
    "gids": (3, {"host_id": 1, "container_id": 2, "length": 3}),
})}
METADATA = {"name": 1, "uid": 2, "namespace": 3}
POD = {
    "metadata": (1, METADATA),
    "hostname": 2,
    "log_directory": 3,
    "labels": (6, None),
    "annotations": (7, None),
    "linux": (8, {"cgroup_parent": 1, "security_context": (2, {"namespace_options": (1, NAMESPACES)})}),
}
CONTAINER = {
    "metadata": (1, {"name": 1}),
    "image": (2, {"image": 1}),
    "command": 3,
    "envs": (6, {"key": 1, "value": 2}),
    "labels": (9, None),
    "annotations": (10, None),
    "log_path": 11,
    "linux": (15, {"security_context": (2, {"namespace_options": (3, NAMESPACES)})}),
}
# The fields of each method's request, by their numbers; beside the number, the fields of a message, or None for a map
# of texts. Then those of its answer.
METHODS = {
    "RunPodSandbox": ({"config": (1, POD), "runtime_handler": 2}, {1: "pod_sandbox_id"}),
    "StopPodSandbox": ({"pod_sandbox_id": 1}, {}),
    "RemovePodSandbox": ({"pod_sandbox_id": 1}, {}),
    "CreateContainer": (
        {"pod_sandbox_id": 1, "config": (2, CONTAINER), "sandbox_config": (3, POD)},
        {1: "container_id"},
    ),
    "StartContainer": ({"container_id": 1}, {}),
    "StopContainer": ({"container_id": 1, "timeout": 2}, {}),
    "RemoveContainer": ({"container_id": 1}, {}),
    "ExecSync": ({"container_id": 1, "cmd": 2, "timeout": 3}, {1: "stdout", 2: "stderr", 3: "exit_code"}),
}


def varint(number):
    head, rest = number & 0x7F, number >> 7
    return bytes([head | 0x80]) + varint(rest) if rest else bytes([head])


def encode(message, fields):
    return b"".join(encode_field(fields[name], value) for name, value in message.items())


def encode_field(field, value):
    number, inner = field if isinstance(field, tuple) else (field, {})
    if inner is None:
        entries = [{"key": key, "value": text} for key, text in value.items()]
        return encode_field((number, {"key": 1, "value": 2}), entries)
    if isinstance(value, list):
        return b"".join(encode_field(field, one) for one in value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    payload = encode(value, inner) if isinstance(value, dict) else value.encode()
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def read_varint(data):
    number, shift = 0, 0
    while True:
        byte = next(data)
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7


def decode(payload, names):
    """Of an answer: texts and numbers, none of which is repeated."""
    answer, data = {}, iter(payload)
    for byte in data:
        number, kind = byte >> 3, byte & 7
        value = read_varint(data)
        if kind == 2:
            value = bytes(next(data) for _ in range(value)).decode(errors="replace")
        answer[names.get(number, str(number))] = value
    return answer


def call(channel, method, request):
    fields, names = METHODS[method]
    ask = channel.unary_unary(
        f"/runtime.v1.RuntimeService/{method}",
        request_serializer=lambda request: encode(request, fields),
        response_deserializer=lambda payload: decode(payload, names),
    )
    try:
        return ask(json.loads(request), timeout=60, wait_for_ready=True)
    except grpc.RpcError as error:
        return {"error": error.details()}


def main(socket):
    # The machine's proxy has no say in this.
    channel = grpc.insecure_channel(f"unix:{socket}", options=[("grpc.enable_http_proxy", 0)])
    for line in sys.stdin:
        print(json.dumps(call(channel, *line.split(" ", 1))), flush=True)


main(sys.argv[1])
