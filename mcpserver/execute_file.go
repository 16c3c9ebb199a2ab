package mcpserver

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/auth"
	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/sessions"
)

// ExecuteFile is the name of a tool that is no language's, though it is called like one.
const ExecuteFile = "execute_file"

// endingsOf are how names of scripts in a language end.
func (s *service) endingsOf(language string) []string {
	if endings := s.Sessions.Config().Runtimes[language].Endings; len(endings) > 0 {
		return endings
	}
	return images.Endings(language)
}

func (s *service) executeFileTool() toolSpec {
	return toolSpec{
		name: ExecuteFile, title: "Run a file",
		description: "Run a session's script like a cell: what it defines stays.",
		input: []mcp.ToolOption{
			sessionArgument(), pathArgument(),
			mcp.WithString("language", mcp.Enum(s.Languages...), mcp.Description("Default: by its ending")),
			mcp.WithArray("args", mcp.WithStringItems(), mcp.Description("For sys.argv")),
			mcp.WithInteger("timeout_seconds", mcp.Description("Interrupt it after this time")),
			mcp.WithInteger("wait_seconds", mcp.Description("Return after this time; it goes on")),
		},
		destructive: true, handle: s.executeFile,
	}
}

func (s *service) executeFile(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "path", "language", "args", "timeout_seconds", "wait_seconds")
	name, language := a.required("path"), a.text("language")
	request := sessions.Request{
		SessionID: a.required("session_id"), Timeout: a.seconds("timeout_seconds", s.Sessions.Config().LongestTimeout()), Caller: clientName(ctx),
	}
	args, wait := a.list("args"), a.wait(defaultWait(r))
	owner, err := s.caller(ctx, a)
	if err == nil {
		request.Language, err = s.languageOf(ctx, name, language)
	}
	if err == nil {
		err = s.runsScript(ctx, owner, &request, name, args)
	}
	if err != nil {
		return toolError(err), nil
	}
	return s.runCell(ctx, r, owner, request, wait)
}

// languageOf returns the language of a script, which the caller may run: the one that he names, or else that of its ending.
func (s *service) languageOf(ctx context.Context, name, named string) (string, error) {
	language := images.Name(named)
	if named == "" {
		language = s.endingLanguage(name)
	}
	switch {
	case language == "":
		return "", fault.New(fault.Invalid, "path: %q does not end like a script in a language that runs here", clean(name)).
			WithHint("give its language: %s", s.languageChoices())
	case !slices.Contains(s.Languages, language):
		return "", fault.New(fault.Invalid, "language: %q does not run here", clean(named)).WithHint("it may be %s", s.languageChoices())
	}
	if scope := language + executeSuffix; !s.Allowed(ctx, scope) {
		return "", auth.NeedsScope("running "+s.titleOf(language), scope)
	}
	return language, nil
}

// endingLanguage is the language that a script's name tells, "" if it tells none that runs here.
func (s *service) endingLanguage(name string) string {
	ending := strings.ToLower(path.Ext(name))
	i := slices.IndexFunc(s.Languages, func(language string) bool { return slices.Contains(s.endingsOf(language), ending) })
	if i < 0 {
		return ""
	}
	return s.Languages[i]
}

// languageChoices are the languages that run here, with their endings.
func (s *service) languageChoices() string {
	var choices []string
	for _, language := range s.Languages {
		choices = append(choices, language+" ("+strings.Join(s.endingsOf(language), ", ")+")")
	}
	return strings.Join(choices, ", ")
}

// runsScript has a request run a script with arguments.
func (s *service) runsScript(ctx context.Context, owner sessions.Owner, r *sessions.Request, name string, args []string) error {
	code := s.Sessions.Config().Runtimes[r.Language].RunFile
	switch {
	case code == "":
		return fault.New(fault.Invalid, "%s cannot run files", s.titleOf(r.Language)).WithHint("let code do it")
	case len(args) > 0 && !strings.Contains(code, "{args}"):
		return fault.New(fault.Invalid, "args: a script in %s gets none here", s.titleOf(r.Language)).WithHint("let code run it with them, or set what it reads by a cell before")
	}
	f, e, err := s.Sessions.OpenFile(ctx, owner, r.SessionID, name)
	if err != nil {
		return err
	}
	_ = f.Close() // the kernel opens what it runs itself, and has what it gets
	path := s.Sessions.PathInside(owner, r.SessionID, e.Path)
	r.File, r.Args = e.Path, shellWords(args)
	r.Code = strings.NewReplacer("{path}", literal(path), "{path:sh}", words.ShellQuoted(path), "{args}", literal(append([]string{}, args...))).Replace(code)
	return nil
}

// maxShownArgs is how many characters of a script's arguments lists show.
const maxShownArgs = 200

// shellWords writes a script's arguments for people, as one would type them; of many their beginning.
func shellWords(args []string) string {
	var b strings.Builder
	for _, arg := range args {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words.Shell(shorten(arg, maxShownArgs)))
		if b.Len() > 4*maxShownArgs {
			break
		}
	}
	return shorten(b.String(), maxShownArgs)
}

// literal is a text, or a list of texts, as a literal that Python and JavaScript understand alike.
func literal[T string | []string](text T) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // strings always can be
	return strings.TrimSpace(b.String())
}
