package images_test

import (
	"os"
	"os/exec"
	"testing"

	"cellblock/kernels/kernelstest"
)

// A kernel that can open no file any more still runs cells that await something, and keeps no file of theirs.
func TestCellsAwaitWithoutFiles(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	kernelstest.Need(t, err == nil, "python3")
	program, err := os.ReadFile("python_interrupts.py")
	if err != nil {
		t.Fatal(err)
	}
	const asserts = `
import os
import resource


async def cell(fails_to_read=False):
    loop = asyncio.get_running_loop()
    if fails_to_read:
        loop.add_reader = lambda *_: (_ for _ in ()).throw(OSError())
    before = os.listdir("/dev/fd")
    with woken_by_signals(loop):
        await asyncio.sleep(0)
        ran = True
    assert os.listdir("/dev/fd") == before
    assert set_wakeup_fd(-1) == -1
    return ran

async def cells():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert await cell()
    assert await cell(fails_to_read=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most[1]))
    with woken_by_signals(asyncio.get_running_loop()):
        await asyncio.sleep(0)
    try:
        with woken_by_signals(asyncio.get_running_loop()):
            raise OSError("the cell's own")
    except OSError as error:
        assert str(error) == "the cell's own"
    resource.setrlimit(resource.RLIMIT_NOFILE, most)

loop = asyncio.new_event_loop()
loop.run_until_complete(cells())
`
	if out, err := exec.CommandContext(t.Context(), interpreter, "-c", string(program)+asserts).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Frames of files so long that IPython tells little of them are told like all others.
func TestFramesOfLongFiles(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	kernelstest.Need(t, err == nil, "python3")
	program, err := os.ReadFile("python_frames.py")
	if err != nil {
		t.Fatal(err)
	}
	const asserts = `
cells = {"/tmp/ipykernel_1/386.py": 7}
for text, want in {
    "/tmp/ipykernel_1/386.py in ?()\n      1 def f():\n----> 5 f(3)\n": "Cell In[7], line 5\n      1 def f():\n----> 5 f(3)\n",
    "\x1b[0;32m/lib/x/frame.py\x1b[0m in \x1b[0;36m?\x1b[0;34m(self, on)\x1b[0m\n  10831 \n\x1b[0;32m> 10832\x1b[0;31m  return merge(\x1b[0m":
        "File /lib/x/frame.py:10832\n  10831 \n\x1b[0;32m> 10832\x1b[0;31m  return merge(\x1b[0m",
    "~/my own/x.py in ?(a)\n-> 1297 a\n": "File ~/my own/x.py:1297\n-> 1297 a\n",
    "Cell In[1], line 3\n----> 3 x": "Cell In[1], line 3\n----> 3 x",
    "KeyError: what is in ?(x)": "KeyError: what is in ?(x)",
    "": "",
}.items():
    got = in_common_form(text, cells)
    assert got == want, (text, got)
`
	if out, err := exec.CommandContext(t.Context(), interpreter, "-c", string(program)+asserts).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
