package viewer

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"strings"
	"sync"
)

//go:embed conversation
var conversationFiles embed.FS

// conversationPage is the document that hosts show of a cell in a conversation. It holds all that it needs. Its policy lets nothing run
// but its one script, and nothing be fetched: whatever a cell prints, even if it came past the renderer, does nothing.
var conversationPage = sync.OnceValue(func() string {
	sheet := mustRead(assetFiles, "assets/app.css") + mustRead(assetFiles, "assets/cells.css") + mustRead(conversationFiles, "conversation/page.css")
	light, dark := splitDark(sheet)
	script := mustRead(conversationFiles, "conversation/page.js")
	policy := "default-src 'none'; script-src " + hashOf(script) + "; style-src " + hashOf(light) + " " + hashOf(dark) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
	return strings.NewReplacer("{{policy}}", policy, "{{light}}", light, "{{dark}}", dark, "{{script}}", script).
		Replace(mustRead(conversationFiles, "conversation/page.html"))
})

func mustRead(files embed.FS, name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic("viewer: " + err.Error()) // they are part of the program
	}
	return string(text)
}

// hashOf is how a policy names an inline script or style.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

const whenDark = "@media (prefers-color-scheme: dark) {"

// splitDark takes from a style sheet what is for dark pages alone: whether its page is one, the host says.
func splitDark(sheet string) (rest, dark string) {
	for {
		before, after, found := strings.Cut(sheet, whenDark)
		rest += before
		if !found {
			return rest, dark
		}
		end := closing(after)
		dark += after[:end]
		sheet = after[end+1:]
	}
}

// closing is where the block ends that a text is inside of.
func closing(text string) int {
	open := 1
	for i, r := range text {
		switch r {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	panic("viewer: a block of a style sheet does not end")
}
