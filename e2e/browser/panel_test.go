package browser

import (
	"strings"
	"testing"

	"cellblock/e2e/rig"
)

// untilLetGo is code that runs until letGo.
const untilLetGo = "while not os.path.exists('go'): time.sleep(0.02)"

func letGo(t *testing.T, c *rig.Client, session string) {
	t.Helper()
	if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": session, "path": "go", "content": "x"}, nil); err != nil {
		t.Fatal(err)
	}
}

// What a cell has written is listed when somebody turns to the files, also while it runs.
func TestFilesWhileACellRuns(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "busy-files", "import os, time\nopen('first.txt', 'w').close()")
	p.desk("busy-files")
	p.click("#tab-files")
	p.untilText("#folder", "first.txt")
	p.click("#tab-details")
	s.start(t, c, "busy-files", "open('second.txt', 'w').close()\nprint('written', flush=True)\n"+untilLetGo)
	p.untilText("#c2 .outputs", "written")
	p.click("#tab-files")
	p.untilText("#folder", "second.txt")
	p.untilText("#state", "busy")
	letGo(t, c, "busy-files")
	p.untilText("#state", "idle")
}

// A panel that is opened while a cell runs says when its variables are known, and has them then.
func TestVariablesWhileACellRuns(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "busy-panel", "import os, time\nanswer = 42")
	s.start(t, c, "busy-panel", untilLetGo+"\nlater = 1")
	p.desk("busy-panel")
	p.until("document.querySelector('#panel-variables').innerText.trim() === 'Known when the cell ends.'")
	letGo(t, c, "busy-panel")
	p.untilText("#panel-variables", "later")

	// What was known stays.
	s.start(t, c, "busy-panel", "os.remove('go')\n"+untilLetGo)
	p.untilText("#state", "busy")
	p.click("#tab-details")
	p.click("#tab-variables")
	if status := eval[int](p, "fetch('/s/busy-panel/variables').then((r) => r.status)"); status != 204 { // asked after the panel did
		t.Errorf("of a busy kernel the variables are answered with %d", status)
	}
	if text := p.text("#panel-variables"); !strings.Contains(text, "later") {
		t.Errorf("the panel shows %q", text)
	}
	letGo(t, c, "busy-panel")
	p.untilText("#state", "idle")
}

// What the panel says of a session stays true while a cell runs: that one runs, for how long, and what it uses.
func TestSessionTabWhileACellRuns(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "busy-details", "import os, time")
	p.desk("busy-details")
	p.click("#tab-details")
	p.untilText("#details", "Memory")
	if text := p.text("#details"); strings.Contains(text, "runs for") {
		t.Errorf("nothing runs, and the panel shows %q", text)
	}
	const used = "[...document.querySelectorAll('#details dt')].find((dt) => dt.textContent === 'Memory').nextElementSibling.textContent"
	before := eval[string](p, used)
	s.start(t, c, "busy-details", "large = b'x' * (200 << 20)\n"+untilLetGo)
	p.until("/Cell 2 runs for\\s+0:0[1-9]/.test(document.querySelector('#details').innerText)")
	p.until(used + " !== " + quoted(before))
	p.untilText("#state", "busy")
	letGo(t, c, "busy-details")
	p.until("!document.querySelector('#details').innerText.includes('runs for')")
}

// What a session uses of CPUs has one name and one unit, in the list and in both parts of the panel that say it.
func TestCPUIsPercent(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "percent", "import os, time")
	s.start(t, c, "percent", "while not os.path.exists('go'): pass")
	const percent = `/^CPU\s+[1-9]\d* %( of \d+ %)?$/.test(`
	p.until(percent + "document.querySelector('tr[data-id=percent] svg.cpu')?.getAttribute('aria-label'))")
	p.desk("percent")
	p.click("#tab-resources")
	p.until(percent + "document.querySelector('figure:has(#cpu-now) figcaption').innerText) && " +
		`/^CPU over the last minutes: now \d+ %, at most \d+ %$/.test(document.querySelector('#cpu-chart').getAttribute('aria-label'))`)
	p.click("#tab-details")
	p.until(percent + "((dt) => dt && `${dt.innerText} ${dt.nextElementSibling.innerText}`)([...document.querySelectorAll('#details dt')].find((dt) => dt.textContent === 'CPU')))")
	letGo(t, c, "percent")
	p.untilText("#state", "idle")
}

// Of a kernel that has ended the panel says so, and nothing of it when there is another.
func TestPanelOfAnEndedKernel(t *testing.T) {
	s := shared(t)
	p := s.signIn(t)
	c := s.mcp(t)
	s.python(t, c, "ended", "import os\nanswer = 42")
	p.desk("ended")
	p.untilText("#panel-variables", "answer")
	p.click("#tab-resources")
	p.until("document.querySelector('#memory-now').textContent && !document.querySelector('#panel-resources figure').hidden")
	s.python(t, c, "ended", "os._exit(1)")
	const ended = "document.querySelector('#panel-resources').innerText.trim() === 'The kernel has ended.'"
	p.until(ended)
	p.click("#tab-variables")
	p.until("document.querySelector('#panel-variables').innerText.trim() === 'The kernel has ended, and its variables with it. The next cell runs on a new one.'")
	p.click("#tab-resources")
	p.open("/s/ended")
	p.until(ended)
	p.click("#tab-variables")
	p.until("document.querySelector('#panel-variables').innerText.trim() === 'The kernel has ended, and its variables with it. The next cell runs on a new one.'")

	s.start(t, c, "ended", "import os, time\n"+untilLetGo+"\nlater = 1")
	p.until("document.querySelector('#panel-variables').innerText.trim() === 'Known when the cell ends.'")
	p.click("#tab-resources")
	p.until("document.querySelector('#no-samples').hidden && !document.querySelector('#panel-resources figure').hidden")
	letGo(t, c, "ended")
	p.click("#tab-variables")
	p.untilText("#panel-variables", "later")
}

// Of a folder with many files more are listed when that is asked for, and the first of them has the focus.
func TestFilesAreListedOn(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "manyfiles", "for i in range(1, 551): open(f'file{i}.txt', 'w').close()")
	p := s.signIn(t)
	p.desk("manyfiles")
	p.click("#tab-files")
	p.untilText("#folder", "50 more names")
	if names := eval[[]string](p, "[...document.querySelectorAll('.files li')].slice(0, 11).map((li) => li.dataset.name)"); names[1] != "file2.txt" || names[10] != "file11.txt" {
		t.Errorf("they are listed as %q", names)
	}
	p.click("#folder [data-most]")
	p.until("document.querySelectorAll('.files li').length === 550 && document.activeElement.innerText === 'file501.txt'")
}

// What others bring and delete is seen where the files are listed, without a cell.
func TestFilesOfOthers(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "brought", "x = 1")
	p := s.signIn(t)
	p.open("/s/brought")
	p.click("#tab-files")
	p.untilText("#folder", "No files here")
	for _, call := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"write_file", map[string]any{"path": "theirs.txt", "content": "theirs"}, "theirs.txt"},
		{"delete_file", map[string]any{"path": "theirs.txt"}, "No files here"},
	} {
		call.args["session_id"] = "brought"
		if _, err := c.Call(t.Context(), call.tool, call.args, nil); err != nil {
			t.Fatal(err)
		}
		p.untilText("#folder", call.want)
	}
}

// Files that come faster than they are listed are seen, and asked for once more, not once for each.
func TestManyFilesOfOthers(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "flood", "x = 1")
	p := s.signIn(t)
	p.open("/s/flood")
	p.click("#tab-files")
	p.untilText("#folder", "No files here")
	eval[bool](p, `(() => {
		const {fetch} = globalThis;
		globalThis.lists = [];
		globalThis.fetch = (path, options) => (String(path).includes('/files?') ?
			new Promise((go) => lists.push(go)).then(() => fetch(path, options)) : fetch(path, options));
		return true;
	})()`)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": "flood", "path": name, "content": "x"}, nil); err != nil {
			t.Fatal(err)
		}
		p.until("lists.length > 0")
	}
	s.python(t, c, "flood", "print('behind them')")
	p.untilText("#cells", "behind them")
	if n := eval[int](p, "lists.length"); n != 1 {
		t.Errorf("they are asked for %d times while there is no answer", n)
	}
	eval[bool](p, "(lists[0](), true)")
	p.untilText("#folder", "c.txt")
	p.until("lists.length === 2")
}

// Files of several folders that are dropped together, and called the same, are all there afterwards, under names that no other has.
func TestFilesOfOneName(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "same-names", "open('a (2).txt', 'w').write('there before')")
	p := s.signIn(t)
	p.desk("same-names")
	p.click("#tab-files")
	p.untilText("#folder", "a (2).txt")
	eval[bool](p, `(() => {
		const dropped = new DataTransfer();
		for (const [name, text] of [['a.txt', 'one'], ['a.txt', 'two'], ['Makefile', 'three'], ['a.txt', 'four'], ['a (3).txt', 'five'], ['Makefile', 'six']]) {
			dropped.items.add(new File([text], name));
		}
		return document.querySelector('#panel-files').dispatchEvent(new DragEvent('drop', {dataTransfer: dropped, bubbles: true, cancelable: true}));
	})()`)
	p.untilText("#folder", "Makefile (2)")
	p.until("document.querySelectorAll('#uploads li').length === 0")
	p.untilText(".toasts", "Another a.txt is a (4).txt now.")
	const want = "[('Makefile', 'three'), ('Makefile (2)', 'six'), ('a (2).txt', 'there before'), ('a (3).txt', 'five'), ('a (4).txt', 'two'), ('a (5).txt', 'four'), ('a.txt', 'one')]"
	if text := s.python(t, c, "same-names", "import os; print([(name, open(name).read()) for name in sorted(os.listdir())])").Text; !strings.Contains(text, want) {
		t.Errorf("what came: %s", text)
	}
}

// A file that is dropped while another of its name is on its way, or after a cell has written one that is not listed yet, replaces that
// when somebody says so, and not before.
func TestFilesDroppedOneAfterTheOther(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "twice", "import os, time")
	p := s.signIn(t)
	p.desk("twice")
	p.click("#tab-files")
	p.untilText("#folder", "No files here")
	eval[bool](p, `(() => {
		const {fetch} = globalThis;
		globalThis.held = [];
		globalThis.fetch = (path, options) => (String(path).includes('/uploaded?') ?
			new Promise((go) => held.push(go)).then(() => fetch(path, options)) : fetch(path, options));
		globalThis.dropFile = (name, text) => {
			const dropped = new DataTransfer();
			dropped.items.add(new File([text], name));
			return document.querySelector('#panel-files').dispatchEvent(new DragEvent('drop', {dataTransfer: dropped, bubbles: true, cancelable: true}));
		};
		return true;
	})()`)
	eval[bool](p, "(dropFile('a.txt', 'one'), dropFile('a.txt', 'two'))")
	p.untilText("dialog[open]", "a.txt is there already.")
	p.until("held.length === 1")
	p.key("Escape")
	p.until("!document.querySelector('dialog[open]')")
	eval[bool](p, "dropFile('a.txt', 'three')")
	p.untilText("dialog[open]", "a.txt is there already.")
	p.click("dialog[open] button.danger")
	eval[bool](p, "(held[0](), true)")
	p.until("held.length === 2")
	p.untilText("#folder", "a.txt") // the first, which the other is to replace
	eval[bool](p, "(held[1](), true)")
	p.until("document.querySelectorAll('#uploads li').length === 0")

	s.start(t, c, "twice", "open('b.txt', 'w').write('a cell')\nprint('written', flush=True)\n"+untilLetGo)
	p.untilText("#c2 .outputs", "written")
	eval[bool](p, "dropFile('b.txt', 'a person')")
	p.untilText("dialog[open]", "b.txt is there already.")
	p.key("Escape")
	letGo(t, c, "twice")
	p.untilText("#state", "idle")
	if text := s.python(t, c, "twice", "[open(name).read() for name in ('a.txt', 'b.txt')]").Text; !strings.Contains(text, "['three', 'a cell']") {
		t.Errorf("what is there: %s", text)
	}
}

// Where nobody can say whether a file is there, one that is dropped replaces none, and who dropped it is told.
func TestFilesDroppedWhileNothingIsListed(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "unlisted", "open('a.txt', 'w').write('a cell')")
	p := s.signIn(t)
	p.desk("unlisted")
	p.click("#tab-files")
	p.untilText("#folder", "a.txt")
	eval[bool](p, `(() => {
		const {fetch} = globalThis;
		globalThis.fetch = (path, options) => (String(path).includes('/files?') ? Promise.reject(new TypeError()) : fetch(path, options));
		const dropped = new DataTransfer();
		dropped.items.add(new File(['a person'], 'a.txt'));
		return document.querySelector('#panel-files').dispatchEvent(new DragEvent('drop', {dataTransfer: dropped, bubbles: true, cancelable: true}));
	})()`)
	p.untilText(".toast", "The server cannot be reached.")
	if text := s.python(t, c, "unlisted", "open('a.txt').read()").Text; !strings.Contains(text, "a cell") {
		t.Errorf("what is there: %s", text)
	}
}
