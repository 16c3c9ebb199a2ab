// Package sessionid says what may be the id of a session, and makes ids.
package sessionid

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"cellblock/internal/fault"
)

// Max is the most characters that a session id may have.
const Max = 64

// Validate returns an Invalid error that names the field and the rule when id cannot be a session's id. It is the gate
// before an id touches a label, a log line or a query; a path it never touches.
func Validate(id string) error {
	const rule = `1 to 64 characters of A-Z a-z 0-9 "." "_" "-", and not "." or ".."`
	switch {
	case len(id) > Max:
		return fault.New(fault.Invalid, "session_id: %d characters, but it must be %s", utf8.RuneCountInString(id), rule)
	case id == "" || id == "." || id == "..", strings.ContainsFunc(id, notIDCharacter):
		return fault.New(fault.Invalid, "session_id: %q is not allowed, it must be %s", id, rule)
	}
	return nil
}

func notIDCharacter(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
}

// Mint returns an id that is easy to read and to repeat, such as "amber-otter-42". The caller sees to it that the owner
// has no session of that name; an id is no secret, so it need not be hard to guess.
func Mint() string {
	return fmt.Sprintf("%s-%s-%d", pick(adjectives), pick(nouns), 10+rand.IntN(90))
}

// Minted tells whether an id may be one of Mint.
func Minted(id string) bool {
	parts := strings.Split(id, "-")
	return len(parts) >= 3 && slices.Contains(adjectives, parts[0]) && slices.Contains(nouns, parts[1])
}

func pick(words []string) string { return words[rand.IntN(len(words))] }

var adjectives = strings.Fields(`amber ancient azure bold brave bright bronze calm clear clever copper coral crisp
	curious daring deep eager early easy fair fast fine fresh gentle glad golden grand green happy honest humble indigo
	ivory jade jolly keen kind lively lucky merry mild misty modest noble olive opal patient plain polite proud quick
	quiet rapid rosy royal rustic silent silver simple smart smooth snowy solid sunny swift tidy vivid warm wise witty`)

var nouns = strings.Fields(`acorn badger beacon birch bison brook canyon cedar comet crane cricket dolphin eagle ember
	falcon fern finch fjord forest fox garnet gecko glacier harbor hare hawk hazel heron island ivy jaguar juniper
	kestrel lagoon lark lemur lichen linden lynx maple marten meadow meteor moose moss newt oak orca orchid osprey otter
	owl panda pebble pine puffin quail raven reef river robin sparrow spruce stork swan thistle tiger trout tulip walnut
	willow wren zebra`)
