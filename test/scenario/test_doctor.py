"""`pitot doctor` in a network namespace of its own: what it sets, what it keeps, what it gives back."""
import json
import os
import pathlib
import subprocess
import tempfile

import jsonschema
from lab import binary
from tap import Skip

PITOT = binary()
ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = ("net/core/somaxconn", "net/ipv4/ip_local_port_range", "net/ipv4/tcp_max_syn_backlog", "net/ipv4/tcp_rmem")

# Settings of the whole machine cannot be written in here: /proc/sys is read-only but for files of the new namespace.
PREPARE = "set -e; mount --make-rprivate /; mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; " + \
    "".join(f"mount --bind /proc/sys/{f} /proc/sys/{f}; mount -o remount,bind,rw /proc/sys/{f}; " for f in OURS)
NEGLECT = "".join(f"echo '{v}' > /proc/sys/{f}; " for f, v in zip(OURS, ("64", "60000 61000", "64", "4096 131072 200000")))
SHOW = "cat " + " ".join(f"/proc/sys/{f}" for f in OURS) + "; "


def inside(script):
    """Runs a shell script in new network and mount namespaces; they go away with it."""
    if os.geteuid():
        raise Skip("needs root")
    done = subprocess.run(["unshare", "-n", "-m", "sh", "-c", PREPARE + script], capture_output=True, text=True, timeout=40)
    assert done.returncode == 0, done
    return done.stdout


def document(path):
    d = json.loads(pathlib.Path(path).read_text())
    jsonschema.validate(d, json.loads((ROOT / "docs/doctor.schema.json").read_text()))
    return {c["name"]: c for c in d["checks"]}


def test_fix_and_undo_restore_exactly():
    with tempfile.TemporaryDirectory() as folder:
        doctor = f"{PITOT} doctor --undo-file {folder}/undo.json --json {folder}"
        text = inside(NEGLECT + SHOW + f"echo =; {doctor}/1.json --fix >{folder}/text || test $? = 1; {SHOW} echo =; "
                      f"stat -c %a {folder}/undo.json; {doctor}/2.json --fix --for 5000 >/dev/null || test $? = 1; {SHOW}"
                      f"echo =; {doctor}/3.json --undo >/dev/null; {SHOW} echo =; {doctor}/4.json --undo 2>&1 || echo $?")
        before, fixed, again, after, end = text.split("=\n")
        assert before == after == "64\n60000\t61000\n64\n4096\t131072\t200000\n", text
        assert fixed == "1024\n1024\t65535\n1024\n4096\t131072\t4194304\n", text
        assert again == "600\n5000\n1024\t65535\n5000\n4096\t131072\t4194304\n", text
        assert "undo.json" in end and end.endswith("1\n"), end
        names = {f.replace("/", ".") for f in OURS}
        first, third = document(folder + "/1.json"), document(folder + "/3.json")
        assert {c for c in first if first[c]["set"]} == names, first
        assert {c for c in third if third[c]["set"]} == names and len(third) == len(names), third
        assert not os.path.exists(folder + "/undo.json")


def test_what_somebody_changed_is_left_alone():
    with tempfile.TemporaryDirectory() as folder:
        doctor = f"{PITOT} doctor --undo-file {folder}/undo.json"
        text = inside(NEGLECT + f"{doctor} --fix >/dev/null || test $? = 1; echo 77 > /proc/sys/net/core/somaxconn; "
                      f"{doctor} --undo || echo rc $?; echo =; {SHOW}")
        said, after = text.split("=\n")
        assert "left alone" in said and "rc 1" in said, said
        assert after == "77\n60000\t61000\n64\n4096\t131072\t200000\n", after


def test_another_namespace_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        doctor = f"{PITOT} doctor --undo-file {folder}/undo.json"
        text = inside(NEGLECT + f"{doctor} --fix >/dev/null || test $? = 1; unshare -n {doctor} --undo 2>&1 || echo rc $?")
        assert "another network namespace" in text and "rc 1" in text, text
        assert os.path.exists(folder + "/undo.json")


def test_a_kill_at_any_system_call_is_undone():
    neglected = "64\n60000\t61000\n64\n4096\t131072\t200000\n"
    with tempfile.TemporaryDirectory() as folder:
        doctor = f"{PITOT} doctor --undo-file {folder}/undo.json"
        for call, most in (("rename", 1), ("fsync", 2), ("write", 5)):
            for nth in range(1, most + 1):
                text = inside(NEGLECT + f"killed=0; rm -f {folder}/*; strace -o /dev/null -e trace={call} "
                              f"-e inject={call}:signal=KILL:when={nth} {doctor} --fix >/dev/null || killed=$?; "
                              f"{doctor} --undo >/dev/null 2>&1 || true; echo $killed; {SHOW}")
                assert text == "137\n" + neglected, (call, nth, text)


def test_offloads_of_an_interface():
    off = "import fcntl, socket, struct, ctypes; v = ctypes.create_string_buffer(struct.pack('II', 0x2c, 0)); " \
        "fcntl.ioctl(socket.socket(), 0x8946, struct.pack('16sP16x', b'pt0', ctypes.addressof(v)))"
    text = inside("ip link add pt0 type veth peer name pt1; "
                  f"{PITOT} doctor --if pt0 | grep offloads; python3 -c \"{off}\"; {PITOT} doctor --if pt0 | grep -A2 offloads")
    before, after, _, command = text.splitlines()
    assert before.startswith("ok") or "gro off" in before, text
    assert after.startswith("attention") and "gro off" in after, text
    assert command.strip().startswith("would fix it: ethtool -K pt0") and command.endswith("gro on"), text


def test_without_root_it_says_what_would_fix_it():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        text = inside(NEGLECT + f"setpriv --reuid 65534 --clear-groups {PITOT} doctor --fix --undo-file {folder}/u.json"
                      f" || echo rc $?; {SHOW}")
        assert "sysctl -w net.core.somaxconn='1024'" in text and "cannot be written" in text and "rc 1" in text, text
        assert text.endswith("64\n60000\t61000\n64\n4096\t131072\t200000\n"), text
        assert not os.path.exists(folder + "/u.json")


def test_what_cannot_be_read_is_unknown():
    text = inside(f"mount -t tmpfs none /proc/sys/net/core; {PITOT} doctor --json - 2>/dev/null || test $? = 1")
    checks = {c["name"]: c for c in json.loads(text)["checks"]}
    assert checks["net.core.somaxconn"]["state"] == "unknown" and checks["net.core.somaxconn"]["current"] is None, checks
    assert checks["net.ipv4.tcp_rmem"]["state"] != "unknown", checks


def test_languages_and_what_is_refused():
    done = subprocess.run([PITOT, "doctor", "--for", "2M", "--lang", "zh"], capture_output=True, text=True, timeout=30)
    assert done.returncode in (0, 1) and "需注意" in done.stdout and ">= 2000064" in done.stdout, done
    assert "每个连接占用进程的一个描述符" in done.stdout, done
    for words in (["--fix", "--undo"], ["--for", "0"], ["eth0"], ["--if", "none"]):
        done = subprocess.run([PITOT, "doctor", *words], capture_output=True, text=True, timeout=30)
        assert done.returncode == 2 and "pitot doctor" in done.stderr, (words, done)
