package viewer

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// inConversation is a cell as the page of a conversation gets it.
func (p *pages) inConversation(base, id string, number int, q mcpserver.AppQuery) mcpserver.AppCell {
	p.t.Helper()
	e, err := p.sessions.Execution(p.t.Context(), sessions.Owner{Issuer: "test", Subject: "ann"}, id, number)
	if err != nil {
		p.t.Fatal(err)
	}
	return Conversation(ConversationConfig{Base: base, ErrorHint: func(sessions.Choice, kernels.ExecError) string { return "Think." }}).Cell(e, q)
}

func TestCellInAConversation(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print <b>")
	p.ran("ann", "s", "fail")
	cell := p.inConversation("https://cells.example", "s", 1, mcpserver.AppQuery{})
	if cell.Status != "ok" || cell.Took == "" || cell.Link != "https://cells.example/s/s#c1" || !strings.Contains(cell.Code.HTML, "print") ||
		len(cell.Items) != 1 || cell.Items[0].Kind != "stdout" || cell.Items[0].HTML != "<pre>&lt;b&gt;\n</pre>" {
		t.Errorf("%+v", cell)
	}
	again := p.inConversation("", "s", 1, mcpserver.AppQuery{Have: []string{cell.Code.Version, cell.Items[0].Version}})
	if again.Code.HTML != "" || again.Items[0].HTML != "" || again.Items[0].Version != cell.Items[0].Version || again.Link != "" {
		t.Errorf("again: %+v", again)
	}
	failed := p.inConversation("", "s", 2, mcpserver.AppQuery{})
	if failed.Status != "failed" || len(failed.Items) != 1 || !strings.Contains(failed.Items[0].HTML, "Think.") {
		t.Errorf("%+v", failed)
	}
}

// kept are the parts of a page that holds what a cell shows.
func kept(base string, outs ...kernels.Output) []mcpserver.AppPart {
	s := &shown{session: "s", number: 1, kept: &keeping{base: base}, whole: map[string]bool{"0": true}}
	feed(s, outs...)
	return s.parts(false, nil)
}

// A page of a conversation has no address but the viewer's, and where there is no viewer none.
func TestAddressesInAConversation(t *testing.T) {
	many := []kernels.Output{printed("stdout", strings.Repeat("x", 3*maxShown))}
	for range maxItems {
		many = append(many, displayed(kernels.OutputDisplay, "", "1"))
	}
	for base, want := range map[string]string{"": "", "https://cells.example": `href="https://cells.example/s/s/`} {
		for _, part := range kept(base, many...) {
			for _, href := range regexp.MustCompile(`(href|src)="[^"]*`).FindAllString(part.HTML, -1) {
				if want == "" || !strings.HasPrefix(href, want) {
					t.Errorf("with %q, %s has %s", base, part.Key, href)
				}
			}
		}
	}
}

// What one page holds is bounded: the last items have room first.
func TestRoomInAConversation(t *testing.T) {
	var outs []kernels.Output
	for i := range 40 {
		outs = append(outs, displayed(kernels.OutputDisplay, "", fmt.Sprint("first ", i)), displayed(kernels.OutputDisplay, "", "x"))
		outs[len(outs)-1].Data["text/markdown"] = []byte(`"` + strings.Repeat("a ", 80_000) + `"`)
	}
	parts, size := kept("", outs...), 0
	for _, part := range parts {
		size += len(part.HTML)
	}
	if size > maxKept+1000 || size < maxKept/2 || parts[0].Key != "earlier" || !strings.Contains(parts[0].HTML, "outputs of this cell not shown here") || parts[len(parts)-1].Key != "79" {
		t.Errorf("%d bytes in %d parts, the first %s: %.200s", size, len(parts), parts[0].Key, parts[0].HTML)
	}
}

func TestPicturesInAConversation(t *testing.T) {
	const png = "iVBORw0KGgo="
	place := func(data string) keptPlace {
		return keptPlace{place: place{session: "s", number: 1}, kept: &keeping{}, out: kernels.Output{Data: map[string]json.RawMessage{"image/png": json.RawMessage(`"` + data + `"`)}}}
	}
	for data, want := range map[string]string{
		png: "data:image/png;base64," + png, `iVBO\nRw0KGgo=`: "data:image/png;base64," + png, "!": "", strings.Repeat("A", maxKeptPicture): "",
	} {
		if got := place(data).Raw("image/png"); got != want {
			t.Errorf("%.30s: %.60s", data, got)
		}
	}
	if got := place(png).Raw("application/pdf"); got != "" {
		t.Errorf("another form: %s", got)
	}
}

// The page's policy names its script and styles, and nothing else; whether it is dark the host says.
func TestPageOfAConversation(t *testing.T) {
	page := conversationPage()
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1]
	inline := regexp.MustCompile(`(?s)<(style|script)[^>]*>(.*?)</(style|script)>`).FindAllStringSubmatch(page, -1)
	if len(inline) != 3 || strings.Count(policy, "sha256-") != 3 || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || !strings.HasPrefix(policy, "default-src 'none'; ") {
		t.Fatalf("%d inline parts; %s", len(inline), policy)
	}
	for _, part := range inline {
		sum := sha256.Sum256([]byte(part[2]))
		if !strings.Contains(policy, part[1]+"-src ") || !strings.Contains(policy, "sha256-"+base64.StdEncoding.EncodeToString(sum[:])) {
			t.Errorf("the policy does not name the %s %.60s", part[1], part[2])
		}
	}
	if dark := inline[1][2]; !strings.Contains(dark, "--page: #14171c") || strings.Contains(inline[0][2], "prefers-color-scheme") || strings.Count(dark, "{") != strings.Count(dark, "}") {
		t.Errorf("the dark style: %s", dark)
	}
	for _, outside := range []string{"http://", "https://", "//cdn", "url("} {
		if i := strings.Index(page, outside); i >= 0 {
			t.Errorf("the page has %.60s", page[i:])
		}
	}
}
