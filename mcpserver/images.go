package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/auth"
	"cellblock/egress"
	"cellblock/images/derived"
	"cellblock/images/packages"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver/terminal"
	"cellblock/sessions"
)

// ImageLibrary makes and keeps images with packages for owners (*derived.Library).
type ImageLibrary interface {
	Create(ctx context.Context, owner, name string, languages []string, set packages.Set, log io.Writer) (derived.Made, error)
	Extend(ctx context.Context, owner, name, image string, set packages.Set, log io.Writer) (derived.Made, error)
	List(ctx context.Context, owner string) ([]derived.Entry, error)
	Delete(ctx context.Context, owner, name string) error
}

// imageEntry is one image in structured results.
type imageEntry struct {
	Name      string   `json:"name"`
	Languages []string `json:"languages"`
	Packages  []string `json:"packages,omitempty"`
	Base      string   `json:"base,omitempty"`
	Yours     bool     `json:"yours"`
	SizeMB    int64    `json:"size_mb"`
	Created   string   `json:"created,omitempty"`
	LastUsed  string   `json:"last_used,omitempty"`
}

var imagesSchema = listSchema("images", "name")

func packagesArgument() mcp.ToolOption {
	return mcp.WithArray("packages", mcp.Required(), mcp.WithStringItems(),
		mcp.Description(`As "polars>=1"; of another manager than the language's as "apt:graphviz"`))
}

func (s *service) createImageTool() toolSpec {
	return toolSpec{
		name: "create_image", title: "Create an image",
		description: "Build an image with packages, for new sessions.",
		input: []mcp.ToolOption{
			mcp.WithString("name", mcp.Required(), mcp.Description("Of your choice")),
			packagesArgument(),
			mcp.WithArray("languages", mcp.WithStringItems(), mcp.Description("Default: "+strings.Join(s.Languages[:min(1, len(s.Languages))], ""))),
		},
		handle: s.createImage,
	}
}

func (s *service) createImage(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "name", "packages", "languages")
	name, languages := a.required("name"), a.list("languages")
	if len(languages) == 0 {
		languages = s.Languages[:min(1, len(s.Languages))]
	}
	set := a.packages(strings.Join(languages[:min(1, len(languages))], ""))
	owner, library, err := s.imageCaller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	log, began := s.buildLog(ctx, r), time.Now()
	made, err := library.Create(ctx, owner.Key(), name, languages, set, log)
	log.stop()
	if err != nil {
		return toolError(err), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf(`%s A new session runs in it with image: "%s" (execute_%s).`, madeText(made, began), name, languages[0])), nil
}

// madeText says what an image has, and how it came.
func madeText(made derived.Made, began time.Time) string {
	came := "built in " + words.Took(time.Since(began))
	if made.Cached {
		came = "built before"
	}
	text := fmt.Sprintf("Image %s is ready (%s): %s with %s.", made.Name, came, made.Base, strings.Join(made.Packages, ", "))
	if len(made.Replaced) > 0 {
		text += fmt.Sprintf(" The name was another image's, with %s: sessions that run in that one stay there.", strings.Join(made.Replaced, ", "))
	}
	return text
}

func (s *service) listImagesTool() toolSpec {
	return toolSpec{
		name: "list_images", title: "List images",
		description: "List images for sessions: languages, packages, size.",
		output:      imagesSchema, readOnly: true, idempotent: true, handle: s.listImages,
	}
}

func (s *service) listImages(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	owner, library, err := s.imageCaller(ctx, argumentsOf(r))
	if err != nil {
		return toolError(err), nil
	}
	list, err := library.List(ctx, owner.Key())
	if err != nil {
		return toolError(err), nil
	}
	entries, lines := []imageEntry{}, []string{}
	for _, e := range list {
		entry := imageEntryOf(e)
		entries, lines = append(entries, entry), append(lines, entry.line(e))
	}
	return mcp.NewToolResultStructured(map[string]any{"images": entries}, strings.Join(lines, "\n")), nil
}

func imageEntryOf(e derived.Entry) imageEntry {
	entry := imageEntry{
		Name: e.Name, Languages: append([]string{}, e.Languages...), Packages: e.Packages, Base: e.Base, Yours: e.Base != "", SizeMB: e.Size / 1_000_000,
	}
	for field, at := range map[*string]time.Time{&entry.Created: e.Created, &entry.LastUsed: e.LastUsed} {
		if !at.IsZero() {
			*field = at.UTC().Format(time.RFC3339)
		}
	}
	return entry
}

// line is an image on one line: "ml · python · pip:polars>=1 · 812 MB · used 3 h ago".
func (e imageEntry) line(from derived.Entry) string {
	parts := []string{e.Name, strings.Join(e.Languages, ", ")}
	if e.Yours {
		parts = append(parts, "with "+strings.Join(e.Packages, ", "))
	} else {
		parts = append(parts, "the server's own")
	}
	parts = append(parts, fmt.Sprintf("%d MB", e.SizeMB))
	if !from.LastUsed.IsZero() {
		parts = append(parts, "used "+words.Ago(from.LastUsed))
	}
	return terminal.Plain(strings.Join(parts, " · "))
}

func (s *service) deleteImageTool() toolSpec {
	return toolSpec{
		name: "delete_image", title: "Delete an image",
		description: "Delete an image of yours. Sessions that run in it go on.",
		input:       []mcp.ToolOption{mcp.WithString("name", mcp.Required(), mcp.Description("From list_images"))},
		destructive: true, handle: s.deleteImage,
	}
}

func (s *service) deleteImage(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "name")
	name := a.required("name")
	owner, library, err := s.imageCaller(ctx, a)
	if err == nil {
		err = library.Delete(ctx, owner.Key(), name)
	}
	if err != nil {
		return toolError(err), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("Image %s is deleted.", name)), nil
}

func (s *service) installTool() toolSpec {
	return toolSpec{
		name: "install_package", title: "Install packages",
		description: "Build an image that adds packages to a session's.",
		input: []mcp.ToolOption{
			sessionArgument(), packagesArgument(),
			mcp.WithBoolean("move", mcp.Description("Restart the session in it")),
		},
		destructive: true, handle: s.install,
	}
}

func (s *service) install(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "packages", "move")
	id, move := a.required("session_id"), a.flag("move")
	owner, library, err := s.imageCaller(ctx, a)
	if err == nil && move && !s.Allowed(ctx, ScopeManage) {
		err = auth.NeedsScope("install_package with move", ScopeManage)
	}
	if err != nil {
		return toolError(err), nil
	}
	choice, err := s.Sessions.Choice(ctx, owner, id)
	if err != nil {
		return toolError(err), nil
	}
	set := a.packages(choice.Language)
	if a.err != nil {
		return toolError(a.err), nil
	}
	image := choice.Image
	if image == "" {
		image = s.Sessions.Config().Runtimes[choice.Language].Image
	}
	log, began := s.buildLog(ctx, r), time.Now()
	defer log.stop()
	made, err := library.Extend(ctx, owner.Key(), imageOfSession(id), image, set, log)
	if err != nil {
		return toolError(err), nil
	}
	if made.There {
		return mcp.NewToolResultText(fmt.Sprintf("The image of session %s has %s already: nothing was built, and the session is as it was.", id, strings.Join(made.Packages, ", "))), nil
	}
	text := madeText(made, began)
	if !move {
		return mcp.NewToolResultText(fmt.Sprintf(`%s Session %s still runs without: the same call with move: true restarts it in there, or a new session runs in it with image: "%s".`,
			text, id, made.Name)), nil
	}
	info, loaded, err := s.Sessions.Remake(ctx, owner, id, made.Name, clientName(ctx))
	if err != nil {
		return toolError(fault.New(fault.KindOf(err), "%s But session %s was not moved: %w", text, id, err).WithHint("%s", fault.Hint(err))), nil
	}
	if loaded != "" {
		return mcp.NewToolResultText(fmt.Sprintf("%s Session %s now runs in it. %s", text, id, terminal.Plain(loaded))), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("%s Session %s now runs in it (generation %d). Variables, imports and background work are lost; files and history are kept: "+
		"restore_session runs the earlier cells again.", text, id, info.Generation)), nil
}

// imageOfSession is what an image is called that a session's owner has not named. Ids may begin as no name of an image does, and one
// that is too long for a name ends with a hash of it instead.
func imageOfSession(id string) string {
	const most = 64
	name := "session-" + id
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	end := "-" + hex.EncodeToString(sum[:4])
	return name[:most-len(end)] + end
}

// imageCaller is who calls an images tool, and the library, if there is one.
func (s *service) imageCaller(ctx context.Context, a *arguments) (sessions.Owner, ImageLibrary, error) {
	owner, err := s.caller(ctx, a)
	if err == nil && s.Images == nil {
		err = fault.New(fault.Unavailable, "kernels of this server run in a sandbox of its host, and in no images that packages could be installed into").
			WithHint("%s", s.withoutImages(ctx))
	}
	return owner, s.Images, err
}

// withoutImages says how a caller gets packages where there are no images: from a cell, in a profile of his that reaches their indexes
// and whose sessions last.
func (s *service) withoutImages(ctx context.Context) string {
	permit := s.permit(ctx)
	var open []string
	for name, p := range s.Sessions.Config().Profiles {
		if p.Network.Mode == egress.Internet && !p.Once && permit(name) == nil {
			open = append(open, name)
		}
	}
	operator := "the operator can install packages on the host, or use a container engine (provisioner: docker)"
	if len(open) == 0 {
		return "use what is there, or put pure Python modules into the workspace; " + operator
	}
	return fmt.Sprintf(`a new session with profile: %q can install packages for itself, into its workspace, by the host's own programs: run `+
		`%%pip install NAME in Python, npm install NAME in a shell. Else %s`, slices.Min(open), operator)
}

// list returns an argument that is a list of strings, nil when it is absent.
func (a *arguments) list(name string) (texts []string) {
	if _, ok := a.value(name); ok {
		if json.Unmarshal(a.values[name], &texts) != nil {
			a.fail("%s: must be a list of strings, got %s", name, typeName(a.values[name]))
		}
	}
	return texts
}

// packages returns the argument of that name, which must be there.
func (a *arguments) packages(language string) packages.Set {
	if _, ok := a.value("packages"); !ok {
		a.missing("packages")
	}
	set, err := packages.Parse(a.list("packages"), packages.ManagerOf(language))
	if err != nil && a.err == nil {
		a.err = err
	}
	return set
}
