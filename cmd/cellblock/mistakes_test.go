package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// inEmptyFolder makes a folder that nothing is in the current one, with no configuration and no token anywhere.
func inEmptyFolder(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	for _, name := range []string{"CELLBLOCK_CONFIG", "CELLBLOCK_TOKEN", "CELLBLOCK_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("CELLBLOCK_DATA_DIR", filepath.Join(dir, "data"))
}

// command runs a command line, each word an argument, without standard input.
func command(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(""))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	err = root.ExecuteContext(t.Context())
	return out.String(), err
}

// What a person types wrong is told before a server is asked, in words that say what to type.
func TestMistakesAreExplained(t *testing.T) {
	inEmptyFolder(t)
	for name, text := range map[string]string{
		"here.py": "1", "empty": "", "two": "a token\nand another", "good": "a-token\n",
		"nocode.ipynb": `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[]}`,
		"old.ipynb":    `{"nbformat":3,"nbformat_minor":0,"metadata":{},"worksheets":[]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		exit int
		text string
	}{
		"sessions lst":                            {2, "there is no command \"sessions lst\"\nHint: Did you mean ls?"},
		"help sevre":                              {2, "there is no command \"sevre\"\nHint: Did you mean serve?"},
		"help sessions lst":                       {2, "there is no command \"sessions lst\"\nHint: Did you mean ls?"},
		"exce 1":                                  {2, "there is no command \"exce\"\nHint: Did you mean exec?"},
		"exec --sesion s 1":                       {2, "unknown flag: --sesion\nHint: Did you mean --session?"},
		"exec --confg x 1":                        {2, "Did you mean --config?"},
		"exec --frobnicate 1":                     {2, "Hint: See: cellblock exec --help"},
		"sessions show -rf":                       {2, "as in: cellblock sessions show -- -rf"},
		"sessions show --old":                     {2, "as in: cellblock sessions show -- --old"},
		"sessions show -- -rf":                    {77, "there is no token"}, // it is taken for the session
		"completion foo":                          {2, "there is no command \"completion foo\"\nHint: See: cellblock completion --help"},
		"completion bsh":                          {2, "Did you mean bash?"},
		"frobnicate":                              {2, "Hint: See: cellblock --help"},
		"files put s -":                           {2, "Give the PATH"},
		"files put s folder":                      {2, "a folder can be sent as an archive"},
		"files put s nothing":                     {66, "nothing"},
		"files get s here.py":                     {65, "Replace it with --force"},
		"files get s folder":                      {65, "Choose another name with -o"},
		"files get s a -o folder --force":         {65, "Choose another name with -o"},
		"notebook import nothing":                 {66, "the notebook cannot be read"},
		"notebook import here.py":                 {2, "Give an .ipynb file"},
		"notebook import old.ipynb":               {2, "jupyter nbconvert"},
		"notebook import nocode.ipynb":            {2, "there is no code in it"},
		"notebook import -":                       {2, "standard input: "},
		"exec --timeout 0 1":                      {2, "more than nothing"},
		"exec --timeout soon 1":                   {2, "write it as 90s"},
		"exec --url localhost:8787 1":             {2, "Write it as http://"},
		"exec --url ftp://host 1":                 {2, "Write it as http://"},
		"exec 1":                                  {77, "Start `cellblock serve` with the same --data-dir"},
		"exec --token-file nothing 1":             {77, "Check --token-file"},
		"exec --token-file empty 1":               {77, "empty holds no token"},
		"exec --token-file two 1":                 {77, "two holds no token"},
		"exec --token-file folder 1":              {77, "Check --token-file"},
		"open":                                    {77, "Name one with --token-file"},
		"open --token-file two":                   {77, "two holds no token"},
		"token --lifetime 0":                      {2, "more than nothing"},
		"token --subject=":                        {2, "--subject is empty"},
		"token --scopes=":                         {2, "--scopes is empty"},
		"open --scopes=":                          {2, "--scopes is empty"},
		"open --subject=":                         {2, "--subject is empty"},
		"--config nothing.yaml exec 1":            {66, "Check --config"},
		"--log-level loud exec 1":                 {2, "Use one of: debug"},
		"backup folder":                           {65, "nothing is overwritten"},
		"images rm":                               {2, "needs NAME"},
		"--data-dir folder files put s nothing x": {66, "nothing"},
	} {
		out, err := command(t, strings.Fields(line)...)
		if err == nil {
			t.Errorf("%s: it is no mistake", line)
		} else if fault.ExitCode(err) != want.exit || !strings.Contains(fault.Text(err), want.text) || out != "" {
			t.Errorf("%s: exit status %d, printed %q: %s", line, fault.ExitCode(err), out, fault.Text(err))
		}
	}
}

// A token that fits into no header was once told as a server that cannot be reached, with the hint to check its address.
func TestTokenWithLinesIsNotTold(t *testing.T) {
	inEmptyFolder(t)
	t.Setenv("CELLBLOCK_TOKEN", "secret-one\nsecret-two")
	_, err := command(t, "exec", "1")
	if err == nil || !strings.Contains(err.Error(), "CELLBLOCK_TOKEN holds no token") || strings.Contains(fault.Text(err), "secret") {
		t.Errorf("%v", err)
	}
	t.Setenv("CELLBLOCK_TOKEN", " good\n") // as an --env-file has it
	if token, err := (connection{}).token(&Config{}); token != "good" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
}
