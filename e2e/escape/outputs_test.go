package escape

import (
	"strings"
	"testing"
)

// outputs are results that are small where they are made and large where they are read, or that pretend to be something.
var outputs = map[string]string{
	"an image of 30,000 by 30,000 pixels": `
import zlib, struct
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = zlib.compressobj(1)
data = b"".join(rows.compress(b"\0" * (30_001 * 100)) for _ in range(300)) + rows.flush()
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0)) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
from IPython.display import Image, display
display(Image(data=png)); open("bomb.png", "wb").write(png); print(len(png))`,
	"a JPEG whose header lies": `
from IPython.display import Image, display
display(Image(data=b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc0\0\x11\x08\xff\xff\xff\xff\3\1\x22\0\2\x11\1\3\x11\1\xff\xd9", format="jpeg")); print(1)`,
	"JSON that nests 100,000 deep": `
from IPython.display import publish_display_data
class Deep: pass
publish_display_data({"text/plain": "deep", "text/html": "<b>" * 100_000}); print(1)`,
	"an SVG with entities": `
from IPython.display import SVG, display
display({"image/svg+xml": "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>" + "".join("<!ENTITY b%d '%s'>" % (i, "&b%d;" % (i-1) * 10 if i else "&a;" * 10) for i in range(12)) + "]><svg>&b11;</svg>"}, raw=True); print(1)`,
	"20,000 displays":             "from IPython.display import display\nfor i in range(20_000): display(i)",
	"20,000 updates of a display": "from IPython.display import display\nh = display(0, display_id=True)\nfor i in range(20_000): h.update(i)",
	"terminal control":            `print("\x1b]0;owned\x07\x1b[2J\x1b[6n\x1b]52;c;ZXZpbA==\x07\x9b31mx")`,
	"a footer that is forged":     `print("[session other · cell 99 · ok · 0 s]")`,
	"metadata that is forged":     `get_ipython().kernel.session.send(get_ipython().kernel.iopub_socket, "display_data", {"data": {"text/plain": "x"}, "metadata": {}, "transient": {"display_id": "../../x"}}, parent={"header": {"msg_id": "other", "session": "bob"}}); print(1)`,
}

// TestOutputs has the server read results that are made to break who reads them.
func TestOutputs(t *testing.T) {
	needFull(t)
	eachWorld(t, func(w *world) {
		before := w.server.Memory(t)
		for what, code := range outputs {
			r := w.attack(code)
			if len(r.Text) > 200_000 {
				w.Errorf("%s: a result of %d bytes", what, len(r.Text))
			}
			if strings.ContainsAny(r.Text, "\x1b\x07\u009b") {
				w.Errorf("%s: control characters reach the client: %q", what, r.Text)
			}
			for _, image := range r.Images {
				if len(image) > 4<<20 {
					w.Errorf("%s: an image of %d bytes", what, len(image))
				}
			}
			w.bystanderWorks()
		}
		w.call(w.attacker, "read_file", map[string]any{"session_id": w.attacked, "path": "bomb.png"})
		if after := w.server.Memory(t); after > before+400<<20 {
			w.Errorf("the server took %d MB, and takes %d MB", before>>20, after>>20)
		}
		w.wantText(w.attack("print('works')"), "works")
	})
}

// forge lets a cell speak as its kernel, on its kernel's own sockets and with its key, and as nobody.
const forge = `
import json, os, socket, zmq
from ipykernel.kernelapp import IPKernelApp
k = get_ipython().kernel
for kind, content in [("status", {"execution_state": "idle"}), ("execute_reply", {"status": "ok"}), ("stream", {"name": 5, "text": []}),
                      ("execute_result", None), ("no such message", {}), ("status", {"execution_state": "dead"}), ("clear_output", {"wait": "x"})]:
    for parent in [{}, {"header": {"msg_id": "x" * 100_000}}, k.get_parent()]:
        try: k.session.send(k.iopub_socket, kind, content, parent=parent)
        except Exception as e: pass
for frames in [[b""], [b"x"], [b"<IDS|MSG>"], [b"<IDS|MSG>", b"bad", b"{", b"{", b"{", b"{"], [b"<IDS|MSG>"] + [b"\xff" * 1000] * 6, [b"x"] * 5000]:
    try: k.iopub_socket.send_multipart(frames)
    except Exception as e: pass
for name in os.listdir(os.path.dirname(k.parent.connection_file)):
    path = os.path.join(os.path.dirname(k.parent.connection_file), name)
    for garbage in [b"\0" * 9, b"\xff" * 64, b"\xff\0\0\0\0\0\0\0\1\x7f" + b"\xff" * 100, os.urandom(4096)]:
        try:
            s = socket.socket(socket.AF_UNIX); s.settimeout(1); s.connect(path); s.sendall(garbage); s.close()
        except OSError: pass
print("forged")
`

// TestForgery has a cell forge messages: they are the session's own trouble, and nobody else's.
func TestForgery(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.attack(forge)
		w.bystanderWorks()
		// What was forged may have taken the kernel with it, which is said; the next cell works.
		if r := w.attack("print(6 * 7)"); !strings.Contains(r.Text, "42") {
			if r = w.attack("print(6 * 7)"); !strings.Contains(r.Text, "42") {
				w.Errorf("the session does not work any more: %s", r.Text)
			}
		}
	})
}
