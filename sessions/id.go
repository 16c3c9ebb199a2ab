package sessions

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"unicode/utf8"

	"cellblock/internal/fault"
)

// MaxID is the most characters that a session id may have.
const MaxID = 64

// ValidateID returns an Invalid error that names the field and the rule when id cannot be a session's id. It is the gate
// before an id touches a label, a log line or a query; a path it never touches.
func ValidateID(id string) error {
	const rule = `1 to 64 characters of A-Z a-z 0-9 "." "_" "-", and not "." or ".."`
	switch {
	case len(id) > MaxID:
		return fault.New(fault.Invalid, "session_id: %d characters, but it must be %s", utf8.RuneCountInString(id), rule)
	case id == "" || id == "." || id == "..", strings.ContainsFunc(id, notIDCharacter):
		return fault.New(fault.Invalid, "session_id: %q is not allowed, it must be %s", id, rule)
	}
	return nil
}

func notIDCharacter(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
}

// mintID returns an id that is easy to read and to repeat, such as "amber-otter-42". The caller sees to it that the owner
// has no session of that name; an id is no secret, so it need not be hard to guess.
func mintID() string {
	return fmt.Sprintf("%s-%s-%d", pick(adjectives), pick(nouns), 10+mathrand.IntN(90))
}

func pick(words []string) string { return words[mathrand.IntN(len(words))] }

var adjectives = strings.Fields(`amber ancient azure bold brave bright bronze calm clear clever copper coral crisp
	curious daring deep eager early easy fair fast fine fresh gentle glad golden grand green happy honest humble indigo
	ivory jade jolly keen kind lively lucky merry mild misty modest noble olive opal patient plain polite proud quick
	quiet rapid rosy royal rustic silent silver simple smart smooth snowy solid sunny swift tidy vivid warm wise witty`)

var nouns = strings.Fields(`acorn badger beacon birch bison brook canyon cedar comet crane cricket dolphin eagle ember
	falcon fern finch fjord forest fox garnet gecko glacier harbor hare hawk hazel heron island ivy jaguar juniper
	kestrel lagoon lark lemur lichen linden lynx maple marten meadow meteor moose moss newt oak orca orchid osprey otter
	owl panda pebble pine puffin quail raven reef river robin sparrow spruce stork swan thistle tiger trout tulip walnut
	willow wren zebra`)

// newKernelID returns a random id for one launched kernel: 16 of a-z and 2-7, 80 bits.
func newKernelID() string { return strings.ToLower(rand.Text()[:16]) }

// clip shortens what a caller sent, for a message.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
