package viewer

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// panelRoutes are the addresses of the session page's side panel.
func (v *Viewer) panelRoutes() []route {
	read := mcpserver.ScopeRead
	return append([]route{
		{pattern: "GET /s/{id}/variables", scope: read, handle: v.variables},
		{pattern: "GET /s/{id}/details", scope: read, handle: v.details},
		{pattern: "GET /s/{id}/notebook", scope: read, reads: "download_notebook", handle: v.notebook},
	}, v.fileRoutes()...)
}

// panelPart is what templates/parts/panel.html shows.
func (v *Viewer) panelPart(_ *http.Request, _ visit, s sessionView) (any, error) {
	return struct{ MaxPart int }{maxPart}, nil
}

const (
	// maxVariables bounds the variables that are shown, maxValue what is shown of one's text, in bytes.
	maxVariables, maxValue = 500, 300
)

// toolTypes are the types of what is defined to work with data, and shown after the data: functions, then classes, then modules.
var toolTypes = map[string]int{
	"function": 1, "builtin_function_or_method": 1, "method": 1, "ufunc": 1, "partial": 1,
	"type": 2, "ABCMeta": 2, "EnumType": 2, "EnumMeta": 2, "class": 2,
	"module": 3,
}

// variableRow is a variable as the panel shows it.
type variableRow struct {
	Name, Type, Size, Preview string
	Columns                   []sessions.Column
	MoreColumns               bool
}

// variables shows what the user of a session has defined, or why that is not known. A kernel that is busy tells nothing, and the
// page keeps what it has.
func (v *Viewer) variables(w http.ResponseWriter, r *http.Request, who visit) error {
	info, running, err := v.describe(r.Context(), who.owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	switch {
	case !running:
		return writeFragment(w, "remark", "The session does not run, so nothing is defined.")
	case info.State == sessions.Died || info.State == sessions.Culled:
		return writeFragment(w, "remark", endedText(info))
	}
	all, err := v.Sessions.Variables(r.Context(), who.owner, r.PathValue("id"))
	switch kind := fault.KindOf(err); {
	case err == nil:
	case kind == fault.Busy:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case kind == fault.Internal:
		return err
	case kind == fault.Timeout:
		return writeFragment(w, "again", err.Error()+".")
	default:
		return writeFragment(w, "remark", err.Error()+".")
	}
	shown := all.Variables[max(0, len(all.Variables)-maxVariables):]
	list := struct {
		Rows []variableRow
		More int
	}{More: max(0, all.More) + len(all.Variables) - len(shown)}
	for i := range shown {
		list.Rows = append(list.Rows, rowOfVariable(shown[len(shown)-1-i])) // the newest first
	}
	dataFirst(list.Rows)
	return writeFragment(w, "variables", list)
}

// dataFirst puts what was defined to work with data behind the data.
func dataFirst(rows []variableRow) {
	slices.SortStableFunc(rows, func(a, b variableRow) int { return cmp.Compare(toolTypes[a.Type], toolTypes[b.Type]) })
}

func rowOfVariable(one sessions.Variable) variableRow {
	row := variableRow{Name: clipText(one.Name, maxValue), Type: clipText(one.Type, maxValue), Preview: clipText(one.Preview, maxValue)}
	if row.Type == "builtin_function_or_method" {
		row.Type = "function" // to its user it is one
	}
	if toolTypes[one.Type] == 1 {
		row.Preview = strings.TrimPrefix(row.Preview, row.Name) // which stands beside it
	}
	var size []string
	switch {
	case len(one.Shape) > 0:
		var sides []string
		for _, n := range one.Shape[:min(len(one.Shape), 8)] {
			sides = append(sides, strconv.FormatInt(n, 10))
		}
		size = append(size, strings.Join(sides, "×"))
	case one.Length != nil:
		size = append(size, words.Count(*one.Length, itemOf(one.Type)))
	}
	if one.DType != "" {
		size = append(size, clipText(one.DType, maxValue))
	}
	if one.Bytes != nil {
		size = append(size, words.Bytes(*one.Bytes))
	}
	for i, part := range size {
		size[i] = strings.ReplaceAll(part, " ", "\u00a0") // a line does not end within one
	}
	row.Size = strings.Join(size, " · ")
	for _, c := range one.Columns[:min(len(one.Columns), 50)] {
		row.Columns = append(row.Columns, sessions.Column{Name: clipText(c.Name, maxValue), DType: clipText(c.DType, maxValue)})
	}
	row.MoreColumns = len(one.Columns) > 0 && len(one.Shape) == 2 && one.Shape[1] > int64(len(row.Columns))
	return row
}

// itemOf is what a value of a type has so many of.
func itemOf(kind string) string {
	switch kind {
	case "str":
		return "character"
	case "bytes", "bytearray":
		return "byte"
	}
	return "item"
}

// detail is a line of what is known of a session.
type detail struct {
	Name, Value string
	// Time is RFC 3339, and Show how it is written (times.js); the value is then empty.
	Time, Show string
}

// details shows what a session is made of, and bounded by.
func (v *Viewer) details(w http.ResponseWriter, r *http.Request, who visit) error {
	info, running, err := v.describe(r.Context(), who.owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	var used []sessions.Sample
	if running {
		used, _ = v.Sessions.Samples(r.Context(), who.owner, info.ID) // of one that has just ended nothing is known
	}
	return writeFragment(w, "details", v.detailsOf(info, running, used))
}

// detailsOf needs no kernel that answers: all of it is true while a cell runs.
func (v *Viewer) detailsOf(info sessions.Info, running bool, used []sessions.Sample) []detail {
	cfg := v.Sessions.Config()
	profile := cmp.Or(info.Profile, sessions.DefaultProfile)
	list := []detail{
		{Name: "Session", Value: info.ID},
		{Name: "Language", Value: cmp.Or(cfg.Runtimes[info.Language].Title, info.Language)},
		{Name: "Image", Value: cmp.Or(info.Image, cfg.Runtimes[info.Language].Image)},
		{Name: "Profile", Value: profile},
		{Name: "Generation", Value: generationText(info)},
		{Name: "Cells", Value: words.Thousands(int64(info.Executions))},
		{Name: "Began", Time: rfc3339(info.Created), Show: "time"},
		{Name: "Last used", Time: rfc3339(info.LastUsed), Show: "ago"},
	}
	if info.Busy > 0 && info.Last != nil {
		last := info.Last.Info()
		list = append(list, detail{Name: fmt.Sprintf("Cell %d runs for", last.Number), Time: rfc3339(last.Started), Show: "elapsed"})
	}
	if running && !info.Ends.At.IsZero() {
		name := "Kernel ends"
		if info.Ends.Unused {
			name = "Kernel ends unless used"
		}
		list = append(list, detail{Name: name, Time: rfc3339(info.Ends.At), Show: "left"})
	}
	list = append(list, reachOf(cfg.Profiles[profile])...)
	limits := cfg.Profiles[profile].Limits
	list = append(list, usedOf(limits, info, used)...)
	for _, l := range []struct {
		name  string
		value int64
	}{{"Largest file", limits.FileSize}, {"/tmp", limits.Tmp}} {
		if l.value > 0 {
			list = append(list, detail{Name: l.name, Value: words.Bytes(l.value)})
		}
	}
	if limits.PIDs > 0 {
		list = append(list, detail{Name: "Processes", Value: words.Thousands(limits.PIDs)})
	}
	return list
}

// endedText says of a kernel that has ended what becomes of its variables.
func endedText(info sessions.Info) string {
	if info.Saved() {
		return "The kernel has ended. Its variables were saved, and come back with the next cell."
	}
	return "The kernel has ended, and its variables with it. The next cell runs on a new one."
}

// usedOf is what a session may use of memory and CPU, and what it uses of them while it has a kernel.
func usedOf(limits kernels.Limits, info sessions.Info, samples []sessions.Sample) []detail {
	var memory, cpus string
	if n := len(samples); n > 0 && (info.State == sessions.Idle || info.State == sessions.Busy) {
		memory, cpus = words.Bytes(samples[n-1].Memory), percent(samples[n-1].CPU)
	}
	var most, mostCPUs string
	if limits.Memory > 0 {
		most = words.Bytes(limits.Memory)
	}
	if limits.CPUs > 0 {
		mostCPUs = percent(limits.CPUs)
	}
	return []detail{{Name: "Memory", Value: outOf(memory, most)}, {Name: "CPU", Value: outOf(cpus, mostCPUs)}}
}

// outOf is what is used of how much there is at most, where both are known.
func outOf(used, most string) string {
	if used == "" || most == "" {
		return used + most
	}
	return used + " of " + most
}

// reachOf is what kernels of a profile can get at besides their workspace.
func reachOf(p sessions.Profile) []detail {
	network := "none"
	if p.Network.Open() {
		network = cmp.Or(strings.Join(p.Network.Hosts, ", "), "internet") // hosts are named where it leads to them alone
	}
	list := []detail{{Name: "Network", Value: network}}
	for _, m := range p.Mounts {
		access := "read-only"
		if m.Writable {
			access = "writable"
		}
		list = append(list, detail{Name: m.Target, Value: access})
	}
	return list
}

// generationText says which kernel it is, and why there is none if there is none.
func generationText(info sessions.Info) string {
	if info.Lost == "" {
		return strconv.Itoa(info.Generation)
	}
	return fmt.Sprintf("%d, ended: %s", info.Generation, clipText(info.Lost, maxValue))
}

// notebook answers with the session as a Jupyter notebook, to keep.
func (v *Viewer) notebook(w http.ResponseWriter, r *http.Request, who visit) error {
	id := r.PathValue("id")
	book, err := mcpserver.NotebookOf(r.Context(), v.Sessions, who.owner, id)
	if err != nil {
		return err
	}
	text, err := book.Text()
	if err != nil {
		return err
	}
	attach(w, id+".ipynb")
	w.Write([]byte(text)) // a browser that has gone away does not read it
	return nil
}

// attach has a browser keep an answer as a file, whatever is in it.
func attach(w http.ResponseWriter, name string) {
	h := w.Header()
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	h.Set("Content-Disposition", cmp.Or(disposition, "attachment"))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
}

// writeFragment answers with a partial, for a page that is there already.
func writeFragment(w http.ResponseWriter, name string, data any) error {
	html, err := partial(name, data)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox") // should it be opened alone
	w.Write([]byte(html))                                                    // a browser that has gone away does not read it
	return nil
}

// clipText bounds a text, in bytes.
func clipText(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
