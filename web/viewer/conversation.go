package viewer

import (
	"encoding/base64"
	"hash/fnv"
	"html/template"
	"slices"
	"strconv"

	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/sessions"
	"cellblock/web/render"
)

const (
	// maxKept bounds what the page of a conversation holds of one cell, in bytes of HTML, and maxKeptPicture one picture in it. The last
	// items have room first: they are what is looked at.
	maxKept, maxKeptPicture = 4 << 20, 2 << 20
	// maxKeptCode bounds the code there.
	maxKeptCode = 100 << 10
)

// ConversationConfig says what cells look like in the conversation of a model.
type ConversationConfig struct {
	// Base is where browsers reach the viewer, without a path; empty: there is none.
	Base string
	// ErrorHint and PrintedHint are those of Config.
	ErrorHint   func(sessions.Choice, kernels.ExecError) string
	PrintedHint func(c sessions.Choice, texts []string, failed *kernels.ExecError) string
}

// Conversation shows cells in the conversation itself, as far as that goes without a server to fetch from.
func Conversation(cfg ConversationConfig) *mcpserver.App {
	v := &Viewer{Config: Config{PublicURL: cfg.Base, ErrorHint: cfg.ErrorHint, PrintedHint: cfg.PrintedHint}}
	return &mcpserver.App{Page: conversationPage(), Cell: v.inConversation}
}

// keeping is what a page does that holds all that it shows of a cell, and has no address but the viewer's, if there is one.
type keeping struct {
	of   *sessions.Execution
	base string
}

func (k *keeping) address(path string) string {
	if k.base == "" {
		return ""
	}
	return k.base + path
}

// inConversation makes what the page shows of a cell.
func (v *Viewer) inConversation(e *sessions.Execution, q mcpserver.AppQuery) mcpserver.AppCell {
	info := e.Info()
	view := viewOf(info)
	s := v.newShown(e.SessionID(), e, info)
	s.kept, s.whole = &keeping{e, v.PublicURL}, map[string]bool{}
	for _, key := range q.Whole {
		s.whole[key] = true
	}
	more := s.pull(e, &budget{outputs: maxCellOutputs, bytes: maxCellBytes})
	if info.Phase == sessions.PhaseEnded {
		s.advise(info.Result.Error)
	}
	cell := mcpserver.AppCell{
		Status: view.Status, Label: view.Label, Seconds: info.Duration.Seconds(), Took: view.Took, Failure: view.Failure, Hint: view.Hint,
		Code: part("code", "code", keptCode(e, info), q.Have), Items: s.parts(more, q.Have),
		Link: s.address("/s/" + e.SessionID() + "#c" + e.ID()),
	}
	if view.Script != "" {
		cell.Code = part("code", "code script", template.HTML(template.HTMLEscapeString(view.Script)), q.Have)
	}
	return cell
}

// keptCode is a cell's code; of very long code, its beginning.
func keptCode(e *sessions.Execution, info sessions.ExecutionInfo) template.HTML {
	rest := len(info.Code) - maxKeptCode
	if rest <= 0 {
		return codeOf(e, info)
	}
	info.Code = info.Code[:maxKeptCode]
	return codeOf(e, info) + template.HTML("\n… "+words.Bytes(int64(rest))+" more are not shown …")
}

// parts are the items of a cell, the last ones as far as they have room together.
func (s *shown) parts(more bool, have []string) []mcpserver.AppPart {
	room, parts := maxKept, []mcpserver.AppPart{}
	if more {
		parts = append(parts, part("unread", "notice", s.inNotebook("more of its output"), have))
	}
	for i, it := range slices.Backward(s.shownItems()) {
		made := s.html(it)
		if room -= len(made); room < 0 {
			parts = append(parts, part("earlier", "notice", s.inNotebook(words.Count(int64(i+1), "output")+" of this cell"), have))
			break
		}
		if made != "" {
			parts = append(parts, part(it.Key, it.Kind, made, have))
		}
	}
	slices.Reverse(parts)
	return parts
}

// part is a part of a page, without its HTML where the page has that.
func part(key, kind string, made template.HTML, have []string) mcpserver.AppPart {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(kind + "\x00" + string(made))) // it never fails
	p := mcpserver.AppPart{Key: key, Kind: kind, Version: key + " " + strconv.FormatUint(sum.Sum64(), 36)}
	if !slices.Contains(have, p.Version) {
		p.HTML = string(made)
	}
	return p
}

// keptPlace is the place of an output on a page that holds all that it shows.
type keptPlace struct {
	place
	kept *keeping
	out  kernels.Output
}

// Raw is a picture itself, if it is not too large, and of other forms their address in the viewer.
func (p keptPlace) Raw(form string) string {
	raw := p.out.Data[form]
	switch {
	case !render.IsPicture(form):
		return p.kept.address(p.place.Raw(form))
	case len(raw) > maxKeptPicture:
		return ""
	}
	content, err := formBytes(form, raw)
	if err != nil {
		return ""
	}
	return "data:" + form + ";base64," + base64.StdEncoding.EncodeToString(content)
}

// Frame is empty: nothing runs in a conversation but its page's own script.
func (p keptPlace) Frame() string { return "" }

func (p keptPlace) Text(text string) template.HTML {
	folded := foldedText{all: p.all}
	folded.add(text)
	return folded.html(p.kept.address(textAddress(p.session, p.number)))
}
