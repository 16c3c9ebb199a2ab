package words

import "testing"

func TestShell(t *testing.T) {
	for text, want := range map[string]string{
		"run.py": "run.py", "a/b-c=1:2": "a/b-c=1:2", "": "''", "my script.py": "'my script.py'", "it's": `'it'\''s'`, "$x": "'$x'",
		"a\tb": `$'a\tb'`, "a'\n\"": `$'a\'\n"'`, "größe": "'größe'",
		"$(x)`y`\"": "'$(x)`y`\"'",
	} {
		if got := Shell(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
