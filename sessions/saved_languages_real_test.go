//go:build linux

package sessions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/images"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/local"
	"cellblock/sessions"
)

// forgetful is a session in a language whose kernelspec lies in folder, and whose kernel can be stopped for want of use.
type forgetful struct {
	*sessions.Manager
	language string
}

func newForgetful(t *testing.T, spec kernels.Kernelspec, folder string, folders ...string) forgetful {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, images.KernelspecFile))
	if err != nil {
		t.Fatal(err)
	}
	l, err := images.ParseKernelspec(folder, data)
	if err != nil {
		t.Fatal(err)
	}
	dir := kernelstest.ShortDir(t)
	p, err := local.New(local.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), ShimPath: kernelstest.BuildShim(t), ReadOnlyPaths: folders,
	})
	kernelstest.Need(t, err == nil, fmt.Sprintf("the local provisioner (%v)", err))
	t.Cleanup(func() { _ = p.Close() })
	return forgetful{language: l.Name, Manager: newReal(t, func(c *sessions.Config) {
		c.Provisioner, c.SaveVariables, c.IdleTimeout = p, true, time.Second
		c.Runtimes = map[string]sessions.Runtime{l.Name: {Kernelspec: spec, Save: l.Save, Load: l.Load}}
	})}
}

// run runs a cell, which must succeed, and returns what it printed, and what it is told first.
func (f forgetful) run(t *testing.T, code string) (text, told string) {
	t.Helper()
	e := sessions.StartCell(t, f.Manager, sessions.Alice, sessions.Request{SessionID: "s", Language: f.language, Code: code})
	if r := sessions.WaitFor(t, e); r.Error != nil {
		t.Fatalf("%s: %+v", code, r.Error)
	}
	return printed(e), e.Preamble()
}

// culled waits until the kernel is stopped.
func (f forgetful) culled(t *testing.T) {
	t.Helper()
	for {
		changed := f.Changed(sessions.Alice, "s")
		if info, err := f.Get(t.Context(), sessions.Alice, "s"); err != nil || info.State == sessions.Culled {
			return
		}
		<-changed
	}
}

// What a shell knows the next one knows, as it was, and whatever is in a value runs nothing.
func TestRealVariablesOfBashAreBack(t *testing.T) {
	spec, folders := kernelstest.Bash(t)
	f := newForgetful(t, spec, folders[0], folders...)
	f.run(t, "shopt -s extglob")
	f.run(t, strings.Join([]string{
		`name=n x=$'a\001\n"$(touch ran)` + "`touch ran`" + `\377é'; y='a[$(touch ran)]' z=ABC; declare -i y; declare -l z; declare -rx ro='$HOME'`,
		`declare -A m=([a]=$'2\n'); key='$(touch ran)]'; m[$key]=1; list=(1 "b c" [7]=d); declare -n ref=list`,
		`f() { case $1 in @(a|b)) cat <<<"f $name" ;; esac; }; shown() { echo "$E"; }; export -f shown; export E=e`,
		`alias hi='echo "hi hi"'`, `uses() { hi; }`, `set -- 'a b' '$(touch ran)'; set -u; IFS=,; umask 077; unset LANG; PATH=$PATH:/mine`,
		`mkdir -p sub; cd sub; mkdir ../gone; trap 'echo T' ERR; exec 7>/dev/null`,
	}, "\n"))
	f.culled(t)
	text, told := f.run(t, strings.Join([]string{
		`printf '%q ' "$name" "$x" "$y" "$z" "$ro" "${m[a]}" "${m[$key]}" "${#m[@]}" "${!list[@]}" "${ref[1]}" "$@" "$IFS" "${LANG-none}" "${PATH##*:}"; echo`,
		`f a; bash -c shown; uses; pwd; umask; echo ${-//[^u]}; builtin declare -p y z ro; ls -A1 /workspace`,
	}, "\n"))
	want := `n $'a\001\n"$(touch ran)` + "`touch ran`" + `\377\303\251' a\[\$\(touch\ ran\)\] ABC \$HOME $'2\n' 1 2 0 1 7 b\ c a\ b \$\(touch\ ran\) \, none /mine ` +
		"\nf n\ne\nhi hi\n/workspace/sub\n0077\nu\n" +
		"declare -i y=\"a[\\$(touch ran)]\"\ndeclare -l z=\"ABC\"\ndeclare -rx ro=\"\\$HOME\"\ngone\nsub\n"
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if !strings.Contains(told, "its variables were saved. They are back") || !strings.Contains(told, "Not back: 7 (open descriptor), ERR (trap), background") {
		t.Errorf("it is told %s", told)
	}
	// What cannot be is told by its name.
	f.run(t, "cd ../gone")
	f.culled(t)
	f.run(t, "rmdir /workspace/gone; cd .") // on the kernel with it, whose shell goes on in it
	f.culled(t)
	if text, told := f.run(t, "pwd"); text != "/workspace\n" || !strings.Contains(told, "Not back: directory, background") {
		t.Errorf("of a directory that is gone %q, %s", text, told)
	}
}

// A session that has only looked around has nothing to save, and nothing that an image brings is taken for the session's own.
func TestRealBashSavesNothingOfItsOwn(t *testing.T) {
	spec, folders := kernelstest.Bash(t)
	f := newForgetful(t, spec, folders[0], folders...)
	f.run(t, "ls >/dev/null; [[ a =~ a ]]; cat <<<x | cat; (:); f=1; unset f")
	f.culled(t)
	if _, told := f.run(t, "echo"); strings.Contains(told, "saved") {
		t.Errorf("it is told %s", told)
	}
}
