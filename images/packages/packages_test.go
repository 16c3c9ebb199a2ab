package packages

import (
	"slices"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		own  Manager
		text string
		want string // "": refused
	}{
		{Pip, "polars", "pip:polars"},
		{Pip, "Flask_SQLAlchemy", "pip:flask-sqlalchemy"},
		{Pip, "polars >= 1, < 2", "pip:polars<2,>=1"},
		{Pip, "uvicorn[standard] == 0.30.6", "pip:uvicorn[standard]==0.30.6"},
		{Pip, "requests[ security , socks ]", "pip:requests[security,socks]"},
		{Pip, "pkg (>=1.0)", "pip:pkg>=1.0"},
		{Pip, "torch==2.5.1+cu121", "pip:torch==2.5.1+cu121"},
		{Pip, "django==4.2.*", "pip:django==4.2.*"},
		{Pip, "x~=1!2.0rc1.post2.dev3", "pip:x~=1!2.0rc1.post2.dev3"},
		{Npm, "pip:polars", "pip:polars"},
		{Pip, "--index-url=https://evil.example/", ""},
		{Pip, "-r/etc/passwd", ""},
		{Pip, "polars --pre", ""},
		{Pip, "polars; rm -rf /", ""},
		{Pip, "polars; python_version<'3'", ""},
		{Pip, "polars @ https://evil.example/x.whl", ""},
		{Pip, "git+https://evil.example/x", ""},
		{Pip, "https://evil.example/x.whl", ""},
		{Pip, "file:///etc/passwd", ""},
		{Pip, "./here", ""}, {Pip, ".", ""}, {Pip, "/abs", ""}, {Pip, "a/b", ""},
		{Pip, "polars===1", ""}, {Pip, "polars==$(id)", ""}, {Pip, "polars>=1\n--pre", ""}, {Pip, "polars==1\x00", ""},
		{Pip, "polars,", ""}, {Pip, "polars==", ""}, {Pip, "", ""}, {Pip, "pip:", ""}, {Pip, "pölars", ""}, {Pip, "-polars", ""},

		{Npm, "lodash", "npm:lodash"},
		{Npm, "lodash@4.17.21", "npm:lodash@4.17.21"},
		{Npm, "@types/node@^20", "npm:@types/node@^20"},
		{Npm, "@types/node", "npm:@types/node"},
		{Npm, "react@latest", "npm:react@latest"},
		{Npm, "a@>=1.2.3 <2", "npm:a@>=1.2.3 <2"},
		{Npm, "a@>= 1.2", "npm:a@>=1.2"},
		{Npm, "a@1.2.3 - 2", "npm:a@1.2.3 - 2"},
		{Npm, "a@1.x || 2.*", "npm:a@1.x || 2.*"},
		{Npm, "a@2.0.0-rc.1+build.5", "npm:a@2.0.0-rc.1+build.5"},
		{Npm, "a@*", "npm:a@*"},
		{Npm, "user/repo", ""}, {Npm, "a@user/repo", ""}, {Npm, "github:user/repo", ""}, {Npm, "a@npm:b@1", ""},
		{Npm, "git+https://evil.example/x", ""}, {Npm, "a@https://evil.example/x.tgz", ""}, {Npm, "a@file:../x", ""},
		{Npm, "./x", ""}, {Npm, "../x", ""}, {Npm, "~/x", ""}, {Npm, "x.tgz", ""}, {Npm, "a@x.tar.gz", ""}, {Npm, "a@1.2.3-x.tgz", ""},
		{Npm, "--registry=https://evil.example", ""}, {Npm, "-g", ""}, {Npm, "a@", ""}, {Npm, "@scope", ""}, {Npm, "@/x", ""},
		{Npm, "a@1;id", ""}, {Npm, "a@`id`", ""}, {Npm, "A", ""}, {Npm, "_a", ""}, {Npm, "a@--force", ""},

		{Apt, "graphviz", "apt:graphviz"},
		{Apt, "g++", "apt:g++"},
		{Apt, "python3.13", "apt:python3.13"},
		{Apt, "libfoo=1:2.3~rc1+dfsg-4+b1", "apt:libfoo=1:2.3~rc1+dfsg-4+b1"},
		{Pip, "apt:graphviz", "apt:graphviz"},
		{Apt, "graphviz-", ""}, {Apt, "graphviz/sid", ""}, {Apt, "./x.deb", ""}, {Apt, "x.deb", ""}, {Apt, "x=1.deb", ""},
		{Apt, "-oAPT::X=1", ""}, {Apt, "?installed", ""}, {Apt, "~nfoo", ""}, {Apt, "foo*", ""}, {Apt, "^foo$", ""},
		{Apt, "foo bar", ""}, {Apt, "foo:i386", ""}, {Apt, "foo=", ""}, {Apt, "foo=$(id)", ""}, {Apt, "x", ""}, {Apt, "Foo", ""},

		{Nuget, "Newtonsoft.Json", "nuget:Newtonsoft.Json"},
		{Nuget, "Newtonsoft.Json@13.0.3", "nuget:Newtonsoft.Json@13.0.3"},
		{Nuget, "Newtonsoft.Json, 13.0.3", "nuget:Newtonsoft.Json@13.0.3"},
		{Nuget, "X@1.2.3.4-beta.1+5", "nuget:X@1.2.3.4-beta.1+5"},
		{Nuget, "-Source", ""}, {Nuget, "X@[1,2)", ""}, {Nuget, "X@1.*", ""}, {Nuget, "a/b", ""}, {Nuget, "X@", ""}, {Nuget, "X.", ""},
		{Nuget, strings.Repeat("x", 101), ""},
		{Pip, strings.Repeat("x", 300), ""},
	} {
		set, err := Parse([]string{c.text}, c.own)
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%s %q was read as %q", c.own, c.text, set)
		case c.want == "" && fault.KindOf(err) != fault.Invalid:
			t.Errorf("%s %q: %v is not Invalid", c.own, c.text, err)
		case c.want != "" && err != nil:
			t.Errorf("%s %q: %v", c.own, c.text, err)
		case c.want != "" && set[0].String() != c.want:
			t.Errorf("%s %q was read as %q, want %q", c.own, c.text, set[0], c.want)
		}
	}
}

func TestParseSays(t *testing.T) {
	for text, want := range map[string]string{
		"--index-url=https://x.example": "options cannot be given",
		"git+https://x.example/a":       "addresses, paths and repositories",
		"polars==":                      "write it as",
	} {
		if _, err := Parse([]string{text}, Pip); !strings.Contains(fault.Hint(err), want) {
			t.Errorf("%q: the hint is %q, want %q in it", text, fault.Hint(err), want)
		}
	}
}

func TestSetsOfTheSamePackagesAreEqual(t *testing.T) {
	parse := func(texts ...string) Set {
		set, err := Parse(texts, Pip)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	a, b := parse("polars>=1", "Flask", "npm:lodash"), parse("npm:lodash", "flask", "polars >= 1", "flask")
	if !slices.Equal(a, b) || a.Hash("sha256:1") != b.Hash("sha256:1") {
		t.Errorf("%q and %q differ", a, b)
	}
	if a.Hash("sha256:1") == a.Hash("sha256:2") || a.Hash("x") == a.Hash("x", "") || a.Hash("x") == parse("polars>=1").Hash("x") {
		t.Error("different images have one hash")
	}
	if _, err := Parse([]string{"polars==1", "Polars==2"}, Pip); err == nil {
		t.Error("two versions of one package were taken")
	}
	with, err := parse("polars==1", "flask").With(parse("polars==2"))
	if want := []string{"pip:flask", "pip:polars==2"}; err != nil || !slices.Equal(with.Strings(), want) {
		t.Errorf("With: %q, %v, want %q", with.Strings(), err, want)
	}
	if _, err := Parse(make([]string, Max+1), Pip); err == nil {
		t.Error("too many packages were taken")
	}
}

// FuzzParse: whatever is accepted is one argument that no manager takes for anything but a package of its index, and is read again
// as itself.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"polars>=1,<2", "npm:@a/b@^1 || 2 - 3", "apt:g++=1:2-3", "nuget:A.B@1.2", "-x", "a @ b", "a@x.tgz", "pip:[x]", "a==1!2+b"} {
		f.Add(seed, uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, own uint8) {
		set, err := Parse([]string{text}, Managers()[int(own)%len(Managers())])
		if err != nil {
			return
		}
		p := set[0]
		a := p.Argument
		unscoped := a
		if p.Manager == Npm && strings.HasPrefix(a, "@") {
			unscoped = strings.Replace(a, "/", "", 1)
		}
		if strings.ContainsAny(a, "\x00\r\n\t;&$`'\"\\(){}#?%") || strings.Contains(unscoped, "/") || strings.ContainsAny(a[:1], "-./~?^ ") {
			t.Fatalf("%q became %q", text, a)
		}
		if p.Manager != Npm && strings.ContainsAny(a, " |*") && !strings.HasSuffix(a, ".*") && !strings.Contains(a, ".*,") {
			t.Fatalf("%q became %q", text, a)
		}
		if p.Manager != Apt && strings.Contains(a, ":") {
			t.Fatalf("%q became %q", text, a)
		}
		again, err := Parse([]string{p.String()}, Apt)
		if err != nil || again[0] != p {
			t.Fatalf("%q became %q, which is read as %q, %v", text, p, again, err)
		}
	})
}
